"""The herder's thread: one thing after the other, and answers in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from sparkmirror.connect.runtime.herder_thread import HerderThread
from sparkmirror.connect.runtime.tick_stage import TickThreadStage
from sparkmirror.errors import MirrorError, RequestFailed

LATE_S = 0.1
PATIENCE_S = 50
"""How long anything may take that takes no time but on a computer that stands still."""


@pytest.fixture
def stages() -> TickThreadStage:
    return TickThreadStage()


@pytest.fixture
def errands(stages: TickThreadStage) -> Iterator[HerderThread]:
    thread = HerderThread("test-herder", stages)
    thread.start()
    yield thread
    thread.close(PATIENCE_S)


def test_errands_are_done_in_order_and_late_ones_later(errands: HerderThread) -> None:
    while True:
        done: list[str] = []
        over = threading.Event()
        began = time.monotonic()
        errands.schedule(LATE_S, partial(done.append, "late"))
        errands.submit(partial(done.append, "first"))
        errands.submit(partial(done.append, "second"))
        was_slow = time.monotonic() - began >= LATE_S
        errands.schedule(LATE_S, over.set)
        assert over.wait(PATIENCE_S)
        if not was_slow:  # otherwise the late one was due before the others were posted
            break
    assert done == ["first", "second", "late"]


def test_what_is_raised_is_raised_where_it_was_asked(errands: HerderThread) -> None:
    def fail() -> int:
        raise MirrorError("no")

    with pytest.raises(MirrorError, match="no"):
        errands.call(fail, PATIENCE_S)
    assert errands.call(lambda: 1, PATIENCE_S) == 1


def test_an_errand_that_fails_does_not_end_the_thread(
    errands: HerderThread, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise MirrorError("no")

    errands.submit(fail)
    assert errands.call(lambda: 2, PATIENCE_S) == 2
    assert "Uncaught exception in herder work thread" in caplog.text


def test_who_waits_in_vain_hears_what_the_thread_does(
    errands: HerderThread, stages: TickThreadStage
) -> None:
    free, busy, happened = threading.Event(), threading.Event(), []

    def hold() -> None:
        with stages.enter("writing task configs of connector c"):
            busy.set()
            free.wait(PATIENCE_S)

    errands.submit(hold)
    assert busy.wait(PATIENCE_S)
    with pytest.raises(RequestFailed) as failure:
        errands.call(lambda: happened.append("too late"), 0.02)
    assert str(failure.value).startswith(
        "Request timed out. The worker is currently writing task configs of connector c, which beg"
    )
    free.set()
    errands.call(lambda: None, PATIENCE_S)
    assert happened == []  # nobody waited any more, so it was not done either
    with pytest.raises(RequestFailed, match=r"The last operation the worker completed was writing"):
        errands.call_with_future(_never, 0.02)


def _never(answer: Future[int]) -> None:
    assert not answer.done()


def test_an_answer_may_come_from_a_later_errand(errands: HerderThread) -> None:
    def begin(answer: Future[int]) -> None:
        errands.schedule(0.01, lambda: answer.set_result(3))

    assert errands.call_with_future(begin, PATIENCE_S) == 3


def test_nobody_is_answered_after_the_end(stages: TickThreadStage) -> None:
    thread = HerderThread("test-herder", stages)
    done: list[int] = []
    thread.start()
    thread.submit(lambda: done.append(1))
    thread.close(PATIENCE_S)
    assert done == [1]
    with pytest.raises(RequestFailed, match="shutting down"):
        thread.call(lambda: None, PATIENCE_S)
