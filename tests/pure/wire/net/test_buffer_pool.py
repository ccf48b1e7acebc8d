"""The pool uses memory again, but never while a view of it exists."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.wire.net.buffer_pool import (
    MIN_POOLED_BYTES,
    BufferPool,
    MemoryBudget,
    ResponseFrame,
    has_no_views,
)

LARGE = MIN_POOLED_BYTES * 4


def memory_of(frame: ResponseFrame) -> int:
    """Return the identity of the memory of a frame."""
    return id(frame.view.obj)


def test_released_memory_is_allocated_again() -> None:
    pool = BufferPool()
    frame = pool.allocate(LARGE)
    first = memory_of(frame)
    frame.release()
    assert pool.idle_bytes == LARGE
    assert memory_of(pool.allocate(LARGE - 100)) == first
    assert pool.idle_bytes == 0


def test_a_frame_is_deallocated_with_its_last_release() -> None:
    pool = BufferPool(MemoryBudget(1 << 30))
    frame = pool.allocate(LARGE)
    frame.retain()
    frame.retain()
    frame.release()
    frame.release()
    assert pool.budget.used == LARGE
    frame.release()
    assert pool.budget.used == 0


def test_an_unacknowledged_batch_is_never_overwritten() -> None:
    pool = BufferPool()
    frame = pool.allocate(LARGE)
    frame.view[:5] = b"batch"
    batch = frame.view[:5]
    frame.release()  # a mistake of the caller: the batch is not acknowledged
    following = pool.allocate(LARGE)
    following.view[:5] = b"other"
    assert bytes(batch) == b"batch"
    del batch
    following.release()
    reused = {memory_of(frame) for frame in (pool.allocate(LARGE), pool.allocate(LARGE))}
    assert len(reused) == 2
    assert pool.idle_bytes == 0


def test_a_deallocated_frame_cannot_be_used() -> None:
    frame = BufferPool().allocate(10)
    frame.release()
    with pytest.raises(ValueError, match="is deallocated"):
        frame.retain()
    with pytest.raises(ValueError, match="deallocated already"):
        frame.release()
    with pytest.raises(ValueError, match="released"):
        bytes(frame.view)


def test_small_frames_and_too_much_idle_memory_are_not_kept() -> None:
    pool = BufferPool(max_idle_bytes=LARGE)
    pool.allocate(MIN_POOLED_BYTES - 1).release()
    assert pool.idle_bytes == 0
    frames = [pool.allocate(LARGE), pool.allocate(LARGE)]
    for frame in frames:
        frame.release()
    assert pool.idle_bytes == LARGE


@pytest.mark.parametrize(("size", "idle_after"), [(100, 0), (LARGE, LARGE)])
def test_bytes_made_from_a_frame_count_until_they_are_dropped(size: int, idle_after: int) -> None:
    pool = BufferPool(MemoryBudget(1 << 30))
    frame = pool.allocate(100)
    made = bytearray(b"made of it".ljust(size, b"."))
    kept, drop = frame.keep(made)
    frame.release()
    assert kept == made
    assert pool.budget.used == size
    other = pool.allocate(size)
    other.view[:] = bytes(size)
    assert kept == made
    del kept
    drop()
    assert pool.budget.used == size
    assert pool.idle_bytes == idle_after
    other.release()


def test_a_view_of_a_view_is_detected() -> None:
    memory = bytearray(100)
    assert has_no_views(memory)
    inner = memoryview(memory)[10:20][2:4]
    assert not has_no_views(memory)
    inner.release()
    assert has_no_views(memory)
    assert len(memory) == 100


@pytest.mark.parametrize("size", [1, MIN_POOLED_BYTES - 1, MIN_POOLED_BYTES, LARGE, LARGE + 1])
def test_a_frame_has_exactly_the_requested_size(size: int) -> None:
    assert len(BufferPool().allocate(size).view) == size


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(MIN_POOLED_BYTES, LARGE), st.integers(0, 4)), max_size=25))
def test_held_frames_never_share_memory(steps: list[tuple[int, int]]) -> None:
    pool = BufferPool(MemoryBudget(0))
    held: list[tuple[ResponseFrame, memoryview, int]] = []
    for number, (size, action) in enumerate(steps):
        frame = pool.allocate(size)
        frame.view[:4] = number.to_bytes(4, "big")
        held.append((frame, frame.view[:4], number))
        if action == 0:
            frame, view, _ = held.pop(0)
            del view
            frame.release()
        for _, view, mark in held:
            assert bytes(view) == mark.to_bytes(4, "big")
    assert pool.budget.used == sum(frame.size for frame, _, _ in held)
    assert len({memory_of(frame) for frame, _, _ in held}) == len(held)


def test_a_budget_has_its_used_and_available_bytes() -> None:
    budget = MemoryBudget(100)
    budget.reserve(60)
    assert (budget.used, budget.available) == (60, 40)
    budget.release(20)
    assert (budget.used, budget.available) == (40, 60)


def test_a_reservation_beyond_the_limit_is_counted() -> None:
    budget = MemoryBudget(100)
    budget.reserve(150)
    assert (budget.used, budget.available) == (150, 0)


def test_more_bytes_than_reserved_cannot_be_released() -> None:
    budget = MemoryBudget(100)
    budget.reserve(10)
    with pytest.raises(ValueError, match="11 bytes released"):
        budget.release(11)
