"""Memory is used again, but never while a view of it is left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.wire.buffers import SMALL_BYTES, Budget, Frame, Pool, is_unseen

LARGE = SMALL_BYTES * 4


def memory_of(frame: Frame) -> int:
    """The identity of the memory behind a frame."""
    return id(frame.view.obj)


def test_memory_that_came_back_is_lent_again() -> None:
    pool = Pool()
    frame = pool.lend(LARGE)
    first = memory_of(frame)
    frame.release()
    assert pool.kept_bytes == LARGE
    assert memory_of(pool.lend(LARGE - 100)) == first
    assert pool.kept_bytes == 0


def test_a_frame_comes_back_with_its_last_holder() -> None:
    pool = Pool(Budget(1 << 30))
    frame = pool.lend(LARGE)
    frame.hold()
    frame.hold()
    frame.release()
    frame.release()
    assert pool.budget.used == LARGE
    frame.release()
    assert pool.budget.used == 0


def test_an_unacknowledged_batch_is_never_overwritten() -> None:
    pool = Pool()
    frame = pool.lend(LARGE)
    frame.view[:5] = b"batch"
    batch = frame.view[:5]
    frame.release()  # a fault: the batch is still on its way
    following = pool.lend(LARGE)
    following.view[:5] = b"other"
    assert bytes(batch) == b"batch"
    del batch
    following.release()
    reused = {memory_of(frame) for frame in (pool.lend(LARGE), pool.lend(LARGE))}
    assert len(reused) == 2
    assert pool.kept_bytes == 0


def test_a_frame_given_back_cannot_be_touched() -> None:
    frame = Pool().lend(10)
    frame.release()
    with pytest.raises(ValueError, match="given back"):
        frame.hold()
    with pytest.raises(ValueError, match="given back already"):
        frame.release()
    with pytest.raises(ValueError, match="released"):
        bytes(frame.view)


def test_small_frames_and_too_much_idle_memory_are_not_kept() -> None:
    pool = Pool(keep_bytes=LARGE)
    pool.lend(SMALL_BYTES - 1).release()
    assert pool.kept_bytes == 0
    frames = [pool.lend(LARGE), pool.lend(LARGE)]
    for frame in frames:
        frame.release()
    assert pool.kept_bytes == LARGE


def test_a_view_anywhere_is_seen() -> None:
    memory = bytearray(100)
    assert is_unseen(memory)
    inner = memoryview(memory)[10:20][2:4]
    assert not is_unseen(memory)
    inner.release()
    assert is_unseen(memory)
    assert len(memory) == 100


@pytest.mark.parametrize("size", [1, SMALL_BYTES - 1, SMALL_BYTES, LARGE, LARGE + 1])
def test_a_frame_has_exactly_the_size_asked_for(size: int) -> None:
    assert len(Pool().lend(size).view) == size


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(SMALL_BYTES, LARGE), st.integers(0, 4)), max_size=25))
def test_held_frames_never_share_memory(steps: list[tuple[int, int]]) -> None:
    pool = Pool(Budget(0))
    held: list[tuple[Frame, memoryview, int]] = []
    for number, (size, fate) in enumerate(steps):
        frame = pool.lend(size)
        frame.view[:4] = number.to_bytes(4, "big")
        held.append((frame, frame.view[:4], number))
        if fate == 0:
            frame, view, _ = held.pop(0)
            del view
            frame.release()
        for _, view, mark in held:
            assert bytes(view) == mark.to_bytes(4, "big")
    assert pool.budget.used == sum(frame.size for frame, _, _ in held)
    assert len({memory_of(frame) for frame, _, _ in held}) == len(held)


def test_a_budget_refuses_what_does_not_fit() -> None:
    budget = Budget(100)
    assert budget.take(60)
    assert not budget.take(50)
    assert budget.take(40)
    assert budget.free == 0
    budget.give(60)
    assert (budget.used, budget.free) == (40, 60)


def test_a_budget_lets_one_thing_pass_however_large() -> None:
    budget = Budget(100)
    assert budget.take(5000)
    assert budget.free == 0
    assert not budget.take(1)
    budget.give(5000)
    assert budget.take(1)


def test_what_is_there_already_counts_beyond_the_limit() -> None:
    budget = Budget(100)
    budget.spend(150)
    assert (budget.used, budget.free) == (150, 0)


def test_more_cannot_come_back_than_was_taken() -> None:
    budget = Budget(100)
    budget.spend(10)
    with pytest.raises(ValueError, match="11 bytes given back"):
        budget.give(11)
