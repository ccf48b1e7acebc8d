"""Authentication and encryption of a control connection.

    driver → task    a challenge: a nonce of 32 random bytes
    task → driver    a nonce of its own, and the proof of the task
    driver → task    the proof of the driver
    from then on     frames: the encrypted message, and a tag over it and the frame number

The exchange is the three-pass mutual authentication of ISO/IEC 9798-4. Both proofs and all keys are
made of the secret and both nonces by HKDF-Expand (RFC 5869), each with a purpose of its own. So the
secret is never sent, and a proof says nothing about a key. A frame of another connection, a frame
of the other direction and a repeated frame are rejected, because each direction of each connection
has its own keys and counts its frames.

Encrypt-then-MAC with the standard library: SHAKE-256 over key and frame number is the keystream,
HMAC-SHA-256 the tag. No I/O.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.copy.control.frames import FrameBuffer, to_frame
from sparkmirror.errors import MirrorError

NONCE_BYTES = 32
"""Bytes of the challenge and of the task's nonce."""
PROOF_BYTES = 32
ANSWER_BYTES = NONCE_BYTES + PROOF_BYTES
TAG_BYTES = 16
_COUNTER_BYTES = 8
_PROTOCOL = b"sparkmirror control channel 2"
"""The version is part of every proof and key: there is nothing to negotiate, and no older version
to fall back to."""


class ControlAuthenticationError(MirrorError):
    """A frame or a proof that does not come from a peer with the secret."""


class FrameCipher:
    """One direction of one connection. Both ends must handle frames in the same order."""

    def __init__(self, cipher_key: bytes, tag_key: bytes) -> None:
        self._cipher_key = cipher_key
        self._tag_key = tag_key
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
        return hmac.digest(self._tag_key, number + encrypted, "sha256")[:TAG_BYTES]


@dataclass(frozen=True, slots=True)
class CipherPair:
    """The ciphers of one end."""

    outgoing: FrameCipher
    incoming: FrameCipher
    _frames: FrameBuffer = field(default_factory=FrameBuffer)

    def wrap(self, message: bytes) -> bytes:
        """Return the frame of a message."""
        return to_frame(self.outgoing.encrypt(message))

    def unwrap(self, received: bytes) -> Iterator[bytes]:
        """Yield the messages that are complete with these bytes.

        Raises OversizedFrame first. Raises ControlAuthenticationError after the messages before.
        """
        for frame in self._frames.append(received):
            yield self.incoming.decrypt(frame)


@dataclass(frozen=True, slots=True)
class HandshakeKeys:
    """Everything that both ends of one connection derive from the secret and both nonces."""

    task_proof: bytes = field(repr=False)
    driver_proof: bytes = field(repr=False)
    _task_keys: tuple[bytes, bytes] = field(repr=False)
    _driver_keys: tuple[bytes, bytes] = field(repr=False)

    @classmethod
    def derive(cls, secret: bytes, challenge: bytes, task_nonce: bytes) -> Self:
        """Derive the proofs and keys of a connection."""
        assert len(challenge) == len(task_nonce) == NONCE_BYTES
        # Both nonces have a fixed size, so two purposes never give the same input.
        purposes = (
            *(b"task proof", b"driver proof"),
            *(b"task encrypts", b"task authenticates", b"driver encrypts", b"driver authenticates"),
        )
        task_proof, driver_proof, *keys = (
            _hkdf_expand(secret, b"/".join((_PROTOCOL, purpose, challenge + task_nonce)))
            for purpose in purposes
        )
        return cls(task_proof, driver_proof, (keys[0], keys[1]), (keys[2], keys[3]))

    def task_ciphers(self) -> CipherPair:
        """Return new ciphers for the task's end."""
        return CipherPair(FrameCipher(*self._task_keys), FrameCipher(*self._driver_keys))

    def driver_ciphers(self) -> CipherPair:
        """Return new ciphers for the driver's end."""
        return CipherPair(FrameCipher(*self._driver_keys), FrameCipher(*self._task_keys))


def new_challenge() -> bytes:
    """Return the driver's nonce for a new connection."""
    return secrets.token_bytes(NONCE_BYTES)


def answer_challenge(secret: bytes, challenge: bytes) -> tuple[bytes, HandshakeKeys]:
    """Return the task's answer to a challenge, and the keys of the connection."""
    task_nonce = secrets.token_bytes(NONCE_BYTES)
    keys = HandshakeKeys.derive(secret, challenge, task_nonce)
    return task_nonce + keys.task_proof, keys


def verify_answer(secret: bytes, challenge: bytes, answer: bytes) -> HandshakeKeys:
    """Return the keys of the connection. Raises ControlAuthenticationError for a wrong answer."""
    if len(answer) == ANSWER_BYTES:
        keys = HandshakeKeys.derive(secret, challenge, answer[:NONCE_BYTES])
        if hmac.compare_digest(answer[NONCE_BYTES:], keys.task_proof):
            return keys
    raise ControlAuthenticationError(
        "the peer of a new control connection does not know the secret of this run,"
        " or is another version of sparkmirror"
    )


def verify_driver(keys: HandshakeKeys, proof: bytes) -> None:
    """Raise ControlAuthenticationError if the proof is not the driver's."""
    if not hmac.compare_digest(proof, keys.driver_proof):
        raise ControlAuthenticationError(
            "the server does not know the secret of this run, or is another version of sparkmirror"
        )


class TaskFramesHandshake:
    """The end of a task, or of the planner."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._received = b""
        self._keys: HandshakeKeys | None = None
        self._is_done = False

    @property
    def bytes_wanted(self) -> int:
        """The rest of the challenge, then of the driver's proof."""
        if self._is_done:
            return 0
        return (PROOF_BYTES if self._keys else NONCE_BYTES) - len(self._received)

    def begin(self) -> bytes:
        """Return nothing: the driver begins."""
        return b""

    def receive(self, received: bytes) -> bytes:
        """Take received bytes. Returns the bytes to send. Raises ControlAuthenticationError."""
        self._received += received
        if self.bytes_wanted:
            return b""
        whole, self._received = self._received, b""
        if self._keys is None:
            answer, self._keys = answer_challenge(self._secret, whole)
            return answer
        verify_driver(self._keys, whole)
        self._is_done = True
        return b""

    def cipher(self) -> CipherPair:
        """Return the ciphers of the task."""
        assert self._is_done and self._keys
        return self._keys.task_ciphers()


class DriverFramesHandshake:
    """The end of the driver. It reads the 64 bytes of an answer and no more."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._challenge = new_challenge()
        self._answer = b""
        self._keys: HandshakeKeys | None = None

    @property
    def bytes_wanted(self) -> int:
        """The rest of the answer."""
        return ANSWER_BYTES - len(self._answer)

    def begin(self) -> bytes:
        """Return the challenge."""
        return self._challenge

    def receive(self, received: bytes) -> bytes:
        """Take received bytes. Returns the bytes to send. Raises ControlAuthenticationError."""
        self._answer += received
        if self.bytes_wanted:
            return b""
        self._keys = verify_answer(self._secret, self._challenge, self._answer)
        return self._keys.driver_proof

    def cipher(self) -> CipherPair:
        """Return the ciphers of the driver."""
        assert self._keys
        return self._keys.driver_ciphers()


def _hkdf_expand(secret: bytes, info: bytes) -> bytes:
    """Return the first block of HKDF-Expand with SHA-256; the secret is its pseudorandom key."""
    return hmac.digest(secret, info + b"\x01", "sha256")


def _xor(data: bytes, keystream: bytes) -> bytes:
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(keystream, "big")
    return mixed.to_bytes(len(data), "big")
