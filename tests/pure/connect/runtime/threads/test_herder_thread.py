"""The herder thread: actions in order, and results within the timeout."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from sparkmirror.connect.runtime.threads.herder_thread import CallWatch, HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.errors import MirrorError, RequestFailed, WorkerStarting
from tests.support.waiting import wait_until

LATE_S = 0.1
PATIENCE_S = 50
"""The timeout of steps that take no time on a computer that is not overloaded."""


@pytest.fixture
def tick_stage() -> TickThreadStage:
    return TickThreadStage()


@pytest.fixture
def herder_thread(tick_stage: TickThreadStage) -> Iterator[HerderThread]:
    thread = HerderThread("test-herder", tick_stage)
    thread.start()
    yield thread
    thread.close(PATIENCE_S)


def test_actions_run_in_order_and_scheduled_ones_after_their_delay(
    herder_thread: HerderThread,
) -> None:
    while True:
        done: list[str] = []
        over = threading.Event()
        began = time.monotonic()
        herder_thread.schedule(LATE_S, partial(done.append, "late"))
        herder_thread.submit(partial(done.append, "first"))
        herder_thread.submit(partial(done.append, "second"))
        was_slow = time.monotonic() - began >= LATE_S
        herder_thread.schedule(LATE_S, over.set)
        assert over.wait(PATIENCE_S)
        if not was_slow:  # otherwise the late action was due before the others were submitted
            break
    assert done == ["first", "second", "late"]


def test_an_error_of_a_function_is_raised_in_the_calling_thread(
    herder_thread: HerderThread,
) -> None:
    def fail() -> int:
        raise MirrorError("no")

    with pytest.raises(MirrorError, match="no"):
        herder_thread.call(fail, PATIENCE_S)
    assert herder_thread.call(lambda: 1, PATIENCE_S) == 1


def test_an_action_that_fails_does_not_end_the_thread(
    herder_thread: HerderThread, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise MirrorError("no")

    herder_thread.submit(fail)
    assert herder_thread.call(lambda: 2, PATIENCE_S) == 2
    assert "Uncaught exception in herder work thread" in caplog.text


def test_a_call_that_times_out_says_what_the_thread_is_doing(
    herder_thread: HerderThread, tick_stage: TickThreadStage
) -> None:
    free, busy, happened = threading.Event(), threading.Event(), []

    def hold() -> None:
        with tick_stage.enter("writing task configs of connector c"):
            busy.set()
            free.wait(PATIENCE_S)

    herder_thread.submit(hold)
    assert busy.wait(PATIENCE_S)
    with pytest.raises(RequestFailed) as failure:
        herder_thread.call(lambda: happened.append("too late"), 0.02)
    assert str(failure.value).startswith(
        "Request timed out. The worker is currently writing task configs of connector c, which beg"
    )
    assert str(failure.value).endswith("The change was not made.")
    free.set()
    herder_thread.call(lambda: None, PATIENCE_S)
    assert happened == []  # the caller got a timeout, so the action must not run
    action = UnfinishedAction()
    with pytest.raises(
        RequestFailed,
        match=r"The last operation the worker completed was writing.*The change may still take eff",
    ):
        herder_thread.call_with_future(action, 0.02, CallWatch(get_problem=action.await_begin))


class UnfinishedAction:
    """An action that begins and never sets its result."""

    def __init__(self) -> None:
        self._begun = threading.Event()

    def __call__(self, future: Future[int]) -> None:
        assert not future.done()
        self._begun.set()

    def await_begin(self, problem: str = "") -> str:
        """Return the problem as soon as the action has begun."""
        assert self._begun.wait(PATIENCE_S)
        return problem


def test_a_call_ends_earlier_if_the_worker_has_a_problem(herder_thread: HerderThread) -> None:
    problems = ["", "", "backup: connection refused"]
    action = UnfinishedAction()
    watch = CallWatch(
        get_problem=lambda: action.await_begin(
            problems.pop(0) if len(problems) > 1 else problems[0]
        ),
        short_timeout_s=0.02,
        place="Its topics are on backup (b1:9092).",
    )
    with pytest.raises(
        RequestFailed,
        match=r"are on backup \(b1:9092\)\. backup: connection refused\. The change",
    ):
        herder_thread.call_with_future(action, PATIENCE_S, watch)


def test_a_call_that_does_not_begin_in_time_is_not_made(herder_thread: HerderThread) -> None:
    free, busy = threading.Event(), threading.Event()

    def hold() -> None:
        busy.set()
        free.wait(PATIENCE_S)

    herder_thread.submit(hold)
    assert busy.wait(PATIENCE_S)
    with pytest.raises(RequestFailed, match=r"^Request timed out\. The change was not made\.$"):
        herder_thread.call_with_future(
            UnfinishedAction(), PATIENCE_S, CallWatch(short_timeout_s=0.02)
        )
    free.set()


def test_a_refused_call_is_not_made(herder_thread: HerderThread) -> None:
    free, busy, happened = threading.Event(), threading.Event(), []

    def hold() -> None:
        busy.set()
        free.wait(PATIENCE_S)

    herder_thread.submit(hold)
    assert busy.wait(PATIENCE_S)
    watch = CallWatch(get_refusal=lambda: WorkerStarting("reads its topics"))
    with pytest.raises(WorkerStarting, match="reads its topics"):
        herder_thread.call(lambda: happened.append("too late"), PATIENCE_S, watch)
    free.set()
    herder_thread.call(lambda: None, PATIENCE_S)
    assert happened == []


def test_the_wait_of_the_oldest_action_is_known(herder_thread: HerderThread) -> None:
    free, busy = threading.Event(), threading.Event()

    def hold() -> None:
        busy.set()
        free.wait(PATIENCE_S)

    before = time.monotonic()
    herder_thread.submit(hold)
    assert busy.wait(PATIENCE_S)
    herder_thread.submit(lambda: None)
    time.sleep(LATE_S)
    assert LATE_S <= herder_thread.oldest_wait_s() <= time.monotonic() - before
    assert herder_thread.oldest_wait_s(since=time.monotonic() + PATIENCE_S) == 0.0
    free.set()
    herder_thread.call(lambda: None, PATIENCE_S)
    herder_thread.schedule(PATIENCE_S, lambda: None)
    wait_until(lambda: herder_thread.oldest_wait_s() == 0.0, "nothing to be due")


def test_a_later_action_may_complete_the_future(herder_thread: HerderThread) -> None:
    def begin(future: Future[int]) -> None:
        herder_thread.schedule(0.01, lambda: future.set_result(3))

    assert herder_thread.call_with_future(begin, PATIENCE_S) == 3


def test_a_closed_thread_rejects_calls(tick_stage: TickThreadStage) -> None:
    thread = HerderThread("test-herder", tick_stage)
    done: list[int] = []
    thread.start()
    thread.submit(lambda: done.append(1))
    thread.close(PATIENCE_S)
    assert done == [1]
    with pytest.raises(RequestFailed, match="shutting down"):
        thread.call(lambda: None, PATIENCE_S)
