"""Events reach the herder thread in order, and a closed poster delivers none."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sparkmirror.connect.runtime.threads.event_poster import EventPoster
from sparkmirror.connect.runtime.threads.herder_thread import HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage


@pytest.fixture
def herder_thread() -> Iterator[HerderThread]:
    thread = HerderThread("test-herder", TickThreadStage())
    yield thread
    thread.close(50)


def test_handlers_run_on_the_herder_thread_in_the_order_of_posts(
    herder_thread: HerderThread,
) -> None:
    calls: list[tuple[str, int, bool, str]] = []

    def on_event(name: str, task: int, *, has_started: bool) -> None:
        calls.append((name, task, has_started, threading.current_thread().name))

    poster = EventPoster(herder_thread)
    poster.post(on_event, "c", 0, has_started=True)
    poster.post(on_event, "c", 1, has_started=False)
    herder_thread.start()
    herder_thread.call(lambda: None, 50)
    assert calls == [("c", 0, True, "test-herder"), ("c", 1, False, "test-herder")]


def test_a_closed_poster_drops_also_what_was_posted_before(herder_thread: HerderThread) -> None:
    calls: list[str] = []
    poster = EventPoster(herder_thread)
    poster.post(calls.append, "before")
    poster.close()
    poster.post(calls.append, "after")
    herder_thread.start()
    herder_thread.call(lambda: None, 50)
    assert calls == []
