"""Which producers are fenced before new tasks start, and what is written to the config topic."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from sparkmirror.connect.runtime.fencing.zombie_fencing import ZombieFencing
from sparkmirror.errors import ClusterTimeout
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store


@pytest.mark.parametrize(
    ("before", "now", "fenced"),
    [
        (None, 2, None),
        (1, 1, None),
        (1, 2, ["g-c-0"]),
        (2, 1, ["g-c-0", "g-c-1"]),
        (2, 2, ["g-c-0", "g-c-1"]),
        (0, 1, []),
    ],
    ids=["first", "lone", "more", "fewer", "same", "after-reset"],
)
def test_older_producers_are_fenced(
    before: int | None, now: int, fenced: Sequence[str] | None
) -> None:
    calls: list[Sequence[str]] = []
    log = MemoryLog()
    configs = memory_config_store(log)
    configs.start(lambda _: None)
    configs.put_connector_config("c", {"name": "c"})
    if before is not None:
        configs.put_task_count_record("c", before)
    configs.put_task_configs("c", [{}] * now)
    fencing = ZombieFencing(configs, calls.append, "g")
    fencing("c")
    assert calls == ([] if fenced is None else [fenced])
    assert log.records[-1].value == b'{"task-count":%d}' % now
    written = len(log.records)
    fencing("c")  # nothing has changed since
    assert len(log.records) == written


def test_after_a_failed_fencing_the_connector_is_still_pending_fencing() -> None:
    def refuse(ids: Sequence[str]) -> None:
        raise ClusterTimeout("target", f"no answer about {ids}")

    log = MemoryLog()
    configs = memory_config_store(log)
    configs.start(lambda _: None)
    configs.put_connector_config("c", {"name": "c"})
    configs.put_task_count_record("c", 2)
    configs.put_task_configs("c", [{}])
    written = len(log.records)
    with pytest.raises(ClusterTimeout):
        ZombieFencing(configs, refuse, "g")("c")
    assert len(log.records) == written
    assert configs.snapshot().is_pending_fencing("c")


def test_requests_that_come_during_a_round_of_fencing_share_it() -> None:
    configs = memory_config_store(MemoryLog())
    configs.start(lambda _: None)
    configs.put_connector_config("c", {"name": "c"})
    configs.put_task_count_record("c", 2)
    configs.put_task_configs("c", [{}, {}])
    calls: list[Sequence[str]] = []
    in_progress, may_end = threading.Event(), threading.Event()

    def fence_slowly(ids: Sequence[str]) -> None:
        calls.append(ids)
        in_progress.set()
        assert may_end.wait(50)

    fencing = ZombieFencing(configs, fence_slowly, "g")
    first = threading.Thread(target=fencing, args=["c"])
    first.start()
    assert in_progress.wait(50)
    second = threading.Thread(target=fencing, args=["c"])
    second.start()
    may_end.set()
    first.join(50)
    second.join(50)
    assert len(calls) == 1
    assert not configs.snapshot().is_pending_fencing("c")
