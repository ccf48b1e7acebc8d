"""Changes valid inputs: cut, doubled, flipped, joined, with hostile numbers and lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

MAX_CHANGES = 4
MAX_RANDOM_BYTES = 64
RANDOM_SHARE = 0.05
"""Inputs that have nothing of a valid one."""
HOSTILE = (
    *(b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff", b"\x00\x10\x00\x00"),
    *(b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x00", b"\x7f\xff", b"\xff\xff", b"\xff\xfe"),
    *(b"\x00", b"\x00\x00\x00\x00", b"\xff", b"\x80", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90"),
    *(b"99999999999999999999", b"-1", b"1e999", b"NaN", b"\r\n", b"\\", b'"', b"%", b"${"),
)
"""Lengths, numbers and pieces of text that readers tend to get wrong."""

Change = Callable[[Random, bytearray, Sequence[bytes]], None]


def mutate(random: Random, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Return an input made of a seed by a few changes, or of nothing but random bytes."""
    if random.random() < RANDOM_SHARE:
        return random.randbytes(random.randrange(MAX_RANDOM_BYTES))
    data = bytearray(random.choice(seeds))
    pieces = (*HOSTILE, *tokens, *seeds)
    for _ in range(random.randint(1, MAX_CHANGES)):
        random.choice(_CHANGES)(random, data, pieces)
    return bytes(data)


def _flip(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _replace_byte(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def _cut_end(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    del data[random.randrange(len(data) + 1) :]


def _remove(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    start, end = _range(random, data)
    del data[start:end]


def _double(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    start, end = _range(random, data)
    data[start:start] = data[start:end]


def _insert(random: Random, data: bytearray, pieces: Sequence[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.choice(pieces)


def _overwrite(random: Random, data: bytearray, pieces: Sequence[bytes]) -> None:
    piece = random.choice(pieces)
    at = random.randrange(len(data) + 1)
    data[at : at + len(piece)] = piece


def _join(random: Random, data: bytearray, pieces: Sequence[bytes]) -> None:
    other = random.choice(pieces)
    data[random.randrange(len(data) + 1) :] = other[random.randrange(len(other) + 1) :]


def _range(random: Random, data: bytearray) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.randrange(MAX_RANDOM_BYTES))


_CHANGES: Sequence[Change] = (
    *(_flip, _replace_byte, _cut_end, _remove),
    *(_double, _insert, _overwrite, _join),
)
