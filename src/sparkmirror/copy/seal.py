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

HALF = 32
"""Bytes of a challenge, and of what a task adds to it."""
PROOF = 32
TAG = 16
_COUNTER = 8
_SHOWN = b"sparkmirror control channel 1"


class SealBroken(MirrorError):
    """A frame that whoever shares our secret has not sealed, or not as this one."""


class Seal:
    """One direction of one connection. Both ends use it frame by frame, in the same order."""

    def __init__(self, key: bytes) -> None:
        self._cipher_key = _mac(key, b"encipher")
        self._tag_key = _mac(key, b"authenticate")
        self._number = 0

    def close(self, payload: bytes) -> bytes:
        """Encipher the next frame."""
        number = self._next()
        sealed = _xor(payload, self._keystream(number, len(payload)))
        return sealed + self._tag(number, sealed)

    def open(self, frame: bytes) -> bytes:
        """Read the next frame, or raise SealBroken."""
        number = self._next()
        sealed, tag = frame[:-TAG], frame[-TAG:]
        if len(frame) < TAG or not hmac.compare_digest(tag, self._tag(number, sealed)):
            raise SealBroken("a frame on the control channel was changed, repeated or forged")
        return _xor(sealed, self._keystream(number, len(sealed)))

    def _next(self) -> bytes:
        self._number += 1
        return self._number.to_bytes(_COUNTER, "big")

    def _keystream(self, number: bytes, size: int) -> bytes:
        return hashlib.shake_256(self._cipher_key + number).digest(size)

    def _tag(self, number: bytes, sealed: bytes) -> bytes:
        return _mac(self._tag_key, number + sealed)[:TAG]


@dataclass(frozen=True, slots=True)
class Seals:
    """What one end seals with, and what it opens with."""

    outgoing: Seal
    incoming: Seal

    @classmethod
    def of_task(cls, secret: bytes, halves: bytes) -> Self:
        """The task's end."""
        return cls(_seal(secret, b"task", halves), _seal(secret, b"driver", halves))

    @classmethod
    def of_driver(cls, secret: bytes, halves: bytes) -> Self:
        """The driver's end."""
        return cls(_seal(secret, b"driver", halves), _seal(secret, b"task", halves))


def challenge() -> bytes:
    """What a driver says to a stranger."""
    return secrets.token_bytes(HALF)


def answer(secret: bytes, challenged: bytes) -> tuple[bytes, Seals]:
    """What a task says to a challenge, and its seals from then on."""
    halves = challenged + secrets.token_bytes(HALF)
    return halves[HALF:] + _mac(secret, _SHOWN + halves), Seals.of_task(secret, halves)


def check(secret: bytes, challenged: bytes, answered: bytes) -> Seals:
    """The driver's seals for whoever has answered so; raises SealBroken for a stranger."""
    halves, proof = challenged + answered[:HALF], answered[HALF:]
    if not hmac.compare_digest(proof, _mac(secret, _SHOWN + halves)):
        raise SealBroken("a newcomer on the control channel does not know the secret")
    return Seals.of_driver(secret, halves)


def _seal(secret: bytes, who: bytes, halves: bytes) -> Seal:
    return Seal(_mac(secret, who + b" speaks " + halves))


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _xor(data: bytes, keystream: bytes) -> bytes:
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(keystream, "big")
    return mixed.to_bytes(len(data), "big")
