"""Authentication and encryption of a control connection.

    driver → task    a challenge: a nonce of 32 random bytes
    task → driver    a nonce of its own, and a proof: HMAC(secret, both nonces)
    from then on     frames: the encrypted message, and a tag over it and the frame number

The secret is never sent. Each direction has its own keys, derived from the secret and both nonces.
So a frame of another connection, a frame of the other direction and a repeated frame are rejected.
The first frame authenticates the driver: only a peer with the secret can encrypt it.

Encrypt-then-MAC with the standard library: SHAKE-256 over key and frame number is the keystream,
HMAC-SHA-256 the tag. No I/O.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Self

from sparkmirror.errors import MirrorError

NONCE_BYTES = 32
"""Bytes of the challenge and of the task's nonce."""
PROOF_BYTES = 32
TAG_BYTES = 16
_COUNTER_BYTES = 8
_HANDSHAKE_LABEL = b"sparkmirror control channel 1"


class ControlAuthenticationError(MirrorError):
    """A frame or a proof that does not come from a peer with the secret."""


class FrameCipher:
    """One direction of one connection. Both ends must handle frames in the same order."""

    def __init__(self, key: bytes) -> None:
        self._cipher_key = _mac(key, b"encipher")
        self._tag_key = _mac(key, b"authenticate")
        self._frame_number = 0

    def encrypt(self, payload: bytes) -> bytes:
        """Return the next frame, encrypted and with its tag."""
        number = self._next_frame_number()
        encrypted = _xor(payload, self._keystream(number, len(payload)))
        return encrypted + self._tag(number, encrypted)

    def decrypt(self, frame: bytes) -> bytes:
        """Return the payload of the next frame. Raises ControlAuthenticationError."""
        number = self._next_frame_number()
        encrypted, tag = frame[:-TAG_BYTES], frame[-TAG_BYTES:]
        if len(frame) < TAG_BYTES or not hmac.compare_digest(tag, self._tag(number, encrypted)):
            raise ControlAuthenticationError(
                "a frame on the control connection was changed, repeated or forged"
            )
        return _xor(encrypted, self._keystream(number, len(encrypted)))

    def _next_frame_number(self) -> bytes:
        self._frame_number += 1
        return self._frame_number.to_bytes(_COUNTER_BYTES, "big")

    def _keystream(self, number: bytes, size: int) -> bytes:
        return hashlib.shake_256(self._cipher_key + number).digest(size)

    def _tag(self, number: bytes, encrypted: bytes) -> bytes:
        return _mac(self._tag_key, number + encrypted)[:TAG_BYTES]


@dataclass(frozen=True, slots=True)
class CipherPair:
    """The ciphers of one end."""

    outgoing: FrameCipher
    incoming: FrameCipher

    @classmethod
    def for_task(cls, secret: bytes, nonces: bytes) -> Self:
        """Return the ciphers of the task."""
        return cls(
            _derive_cipher(secret, b"task", nonces), _derive_cipher(secret, b"driver", nonces)
        )

    @classmethod
    def for_driver(cls, secret: bytes, nonces: bytes) -> Self:
        """Return the ciphers of the driver."""
        return cls(
            _derive_cipher(secret, b"driver", nonces), _derive_cipher(secret, b"task", nonces)
        )


def new_challenge() -> bytes:
    """Return the driver's nonce for a new connection."""
    return secrets.token_bytes(NONCE_BYTES)


def answer_challenge(secret: bytes, challenge: bytes) -> tuple[bytes, CipherPair]:
    """Return the task's answer to a challenge, and its ciphers."""
    nonces = challenge + secrets.token_bytes(NONCE_BYTES)
    return nonces[NONCE_BYTES:] + _mac(secret, _HANDSHAKE_LABEL + nonces), CipherPair.for_task(
        secret, nonces
    )


def verify_answer(secret: bytes, challenge: bytes, answer: bytes) -> CipherPair:
    """Return the driver's ciphers. Raises ControlAuthenticationError for a wrong answer."""
    nonces, proof = challenge + answer[:NONCE_BYTES], answer[NONCE_BYTES:]
    if not hmac.compare_digest(proof, _mac(secret, _HANDSHAKE_LABEL + nonces)):
        raise ControlAuthenticationError(
            "the peer of a new control connection does not know the secret"
        )
    return CipherPair.for_driver(secret, nonces)


def _derive_cipher(secret: bytes, sender: bytes, nonces: bytes) -> FrameCipher:
    return FrameCipher(_mac(secret, sender + b" sends " + nonces))


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _xor(data: bytes, keystream: bytes) -> bytes:
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(keystream, "big")
    return mixed.to_bytes(len(data), "big")
