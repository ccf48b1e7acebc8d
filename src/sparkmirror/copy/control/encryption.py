"""Seals: both ends of a control channel prove that they know the run's secret, and hide the rest.

    driver → task    a challenge: 32 random bytes
    task → driver    32 random bytes of its own, and a proof: HMAC(secret, both)
    from then on     frames: what is said, enciphered, and a tag over that and the frame's number

The secret itself never travels here. Each direction has keys of its own, made of the secret and
both random halves, so that nothing of another connection, nothing said the other way and no frame
said before is believed. The task knows the driver by its first frame: nobody else can seal it.

Encrypt-then-MAC out of the standard library: SHAKE-256 over key and number gives the keystream,
HMAC-SHA-256 the tag. Nothing here knows a socket.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Self

from sparkmirror.errors import MirrorError

NONCE_BYTES = 32
"""Bytes of a challenge, and of what a task adds to it."""
PROOF_BYTES = 32
TAG_BYTES = 16
_COUNTER_BYTES = 8
_HANDSHAKE_LABEL = b"sparkmirror control channel 1"


class ControlAuthenticationError(MirrorError):
    """A frame that whoever shares our secret has not sealed, or not as this one."""


class FrameCipher:
    """One direction of one connection. Both ends use it frame by frame, in the same order."""

    def __init__(self, key: bytes) -> None:
        self._cipher_key = _mac(key, b"encipher")
        self._tag_key = _mac(key, b"authenticate")
        self._frame_number = 0

    def encrypt(self, payload: bytes) -> bytes:
        """Encipher the next frame."""
        number = self._next_frame_number()
        sealed = _xor(payload, self._keystream(number, len(payload)))
        return sealed + self._tag(number, sealed)

    def decrypt(self, frame: bytes) -> bytes:
        """Read the next frame, or raise SealBroken."""
        number = self._next_frame_number()
        sealed, tag = frame[:-TAG_BYTES], frame[-TAG_BYTES:]
        if len(frame) < TAG_BYTES or not hmac.compare_digest(tag, self._tag(number, sealed)):
            raise ControlAuthenticationError(
                "a frame on the control channel was changed, repeated or forged"
            )
        return _xor(sealed, self._keystream(number, len(sealed)))

    def _next_frame_number(self) -> bytes:
        self._frame_number += 1
        return self._frame_number.to_bytes(_COUNTER_BYTES, "big")

    def _keystream(self, number: bytes, size: int) -> bytes:
        return hashlib.shake_256(self._cipher_key + number).digest(size)

    def _tag(self, number: bytes, sealed: bytes) -> bytes:
        return _mac(self._tag_key, number + sealed)[:TAG_BYTES]


@dataclass(frozen=True, slots=True)
class CipherPair:
    """What one end seals with, and what it opens with."""

    outgoing: FrameCipher
    incoming: FrameCipher

    @classmethod
    def for_task(cls, secret: bytes, halves: bytes) -> Self:
        """The task's end."""
        return cls(
            _derive_cipher(secret, b"task", halves), _derive_cipher(secret, b"driver", halves)
        )

    @classmethod
    def for_driver(cls, secret: bytes, halves: bytes) -> Self:
        """The driver's end."""
        return cls(
            _derive_cipher(secret, b"driver", halves), _derive_cipher(secret, b"task", halves)
        )


def new_challenge() -> bytes:
    """What a driver says to a stranger."""
    return secrets.token_bytes(NONCE_BYTES)


def answer_challenge(secret: bytes, challenged: bytes) -> tuple[bytes, CipherPair]:
    """What a task says to a challenge, and its seals from then on."""
    halves = challenged + secrets.token_bytes(NONCE_BYTES)
    return halves[NONCE_BYTES:] + _mac(secret, _HANDSHAKE_LABEL + halves), CipherPair.for_task(
        secret, halves
    )


def verify_answer(secret: bytes, challenged: bytes, answered: bytes) -> CipherPair:
    """The driver's seals for whoever has answered so; raises SealBroken for a stranger."""
    halves, proof = challenged + answered[:NONCE_BYTES], answered[NONCE_BYTES:]
    if not hmac.compare_digest(proof, _mac(secret, _HANDSHAKE_LABEL + halves)):
        raise ControlAuthenticationError(
            "a newcomer on the control channel does not know the secret"
        )
    return CipherPair.for_driver(secret, halves)


def _derive_cipher(secret: bytes, who: bytes, halves: bytes) -> FrameCipher:
    return FrameCipher(_mac(secret, who + b" speaks " + halves))


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _xor(data: bytes, keystream: bytes) -> bytes:
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(keystream, "big")
    return mixed.to_bytes(len(data), "big")
