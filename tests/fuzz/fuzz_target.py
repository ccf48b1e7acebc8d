"""A parser under test, and what it may do with an input: return, or raise its declared errors."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from tests.fuzz.mutations import mutate

Parse: TypeAlias = Callable[[bytes], object]

MEMORY_LIMIT_BYTES = 32 << 20
"""What one input may make the parser allocate."""
TIME_LIMIT_S = 5.0
"""Processor time for one input: a parser that needs more hangs."""


class FuzzFailure(AssertionError):
    """An input that made a parser raise another error, hang, or take too much memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzTarget:
    """A parser, valid inputs to mutate, and the errors that it declares."""

    name: str
    seeds: Sequence[bytes]
    open_parser: Callable[[], AbstractContextManager[Parse]]
    errors: tuple[type[Exception], ...]
    tokens: Sequence[bytes] = ()
    """Pieces of inputs to insert."""
    cost: int = 1
    """How many times more an input costs than others: `make test` passes so many times fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzReport:
    """What a parser did with its inputs."""

    name: str
    inputs: int
    accepted: int
    refused: int
    slowest_s: float
    """Processor time of the slowest input."""
    peak_bytes: int
    """Memory that the largest input took, at its peak."""


def direct(parse: Parse) -> Callable[[], AbstractContextManager[Parse]]:
    """Return the `open_parser` of a function that needs no set-up."""

    @contextmanager
    def open_parser() -> Iterator[Parse]:
        yield parse

    return open_parser


def run_target(target: FuzzTarget, inputs: int, seed: int) -> FuzzReport:
    """Pass so many inputs to the parser; the same seed gives the same ones. Raises FuzzFailure."""
    random = Random(f"{target.name} {seed}")
    accepted, slowest_s, peak_bytes = 0, 0.0, 0
    with target.open_parser() as parse, _traced_memory():
        for number in range(inputs):
            data = mutate(random, target.seeds, target.tokens)
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            began = time.thread_time()
            try:
                parse(data)
                accepted += 1
            except target.errors:
                pass
            except Exception as error:
                raise FuzzFailure(_failure(target, number, data, repr(error))) from error
            slowest_s = max(slowest_s, time.thread_time() - began)
            peak_bytes = max(peak_bytes, tracemalloc.get_traced_memory()[1] - before)
            if slowest_s > TIME_LIMIT_S:
                raise FuzzFailure(_failure(target, number, data, f"{slowest_s:.1f} s"))
            if peak_bytes > MEMORY_LIMIT_BYTES:
                raise FuzzFailure(_failure(target, number, data, f"{peak_bytes} bytes of memory"))
    return FuzzReport(
        name=target.name,
        inputs=inputs,
        accepted=accepted,
        refused=inputs - accepted,
        slowest_s=slowest_s,
        peak_bytes=peak_bytes,
    )


@contextmanager
def _traced_memory() -> Iterator[None]:
    tracemalloc.start(1)
    try:
        yield
    finally:
        tracemalloc.stop()


def _failure(target: FuzzTarget, number: int, data: bytes, what: str) -> str:
    return f"{target.name}: input {number} ({len(data)} bytes): {what}\n{data!r}"
