"""Connectors and tasks that do not stop in time are reported once, after the stop timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from sparkmirror.connect.runtime.threads.graceful_shutdown_timeout import GracefulShutdownTimeout
from sparkmirror.connect.runtime.threads.herder_thread import HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage

STOP_TIMEOUT_S = 0.01


@pytest.fixture
def herder_thread() -> Iterator[HerderThread]:
    thread = HerderThread("test-herder", TickThreadStage())
    thread.start()
    yield thread
    thread.close(50)


def run_checks(herder_thread: HerderThread) -> None:
    """Wait until every check that was scheduled before has run."""

    def complete_later(future: Future[None]) -> None:
        herder_thread.schedule(3 * STOP_TIMEOUT_S, lambda: future.set_result(None))

    herder_thread.call_with_future(complete_later, 50)


WATCHES = {
    "failed to properly shut down": GracefulShutdownTimeout.watch_connector,
    "Graceful stop of tasks of c failed": GracefulShutdownTimeout.watch_tasks,
}
Watch = Callable[[GracefulShutdownTimeout, Callable[[], bool], Callable[[], None]], None]


@pytest.mark.parametrize(("line", "watch"), WATCHES.items(), ids=["connector", "tasks"])
@pytest.mark.parametrize("has_stopped", [True, False], ids=["stopped", "hung"])
def test_only_what_hangs_is_logged_and_handled(
    line: str,
    watch: Watch,
    herder_thread: HerderThread,
    caplog: pytest.LogCaptureFixture,
    *,
    has_stopped: bool,
) -> None:
    calls: list[str] = []
    watchdog = GracefulShutdownTimeout("c", herder_thread, STOP_TIMEOUT_S)
    watch(watchdog, lambda: has_stopped, lambda: calls.append("hung"))
    run_checks(herder_thread)
    assert calls == ([] if has_stopped else ["hung"])
    assert (line in caplog.text) is not has_stopped
