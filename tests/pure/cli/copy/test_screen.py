"""The output of `copy`: plan, progress with and without a terminal, summary."""

from __future__ import annotations

import io
from collections.abc import Callable

import rich.console

from sparkmirror.cli.copy import text_output
from sparkmirror.cli.copy.completion import BlockedPartition
from sparkmirror.cli.copy.plan import plan_copy
from sparkmirror.cli.copy.progress_tracker import CopyProgress, ProgressTracker
from sparkmirror.cli.copy.ranges import PartitionRange
from sparkmirror.cli.copy.screen import (
    LINE_INTERVAL_S,
    LineScreen,
    held_counts,
    held_lines,
    open_screen,
    topic_table,
    total_line,
)
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.model import TopicPartition
from tests.support.cli.copy_requests import cluster_descriptions, copy_request, topic_view

RUNNING = DriverStatus(phase=DriverPhase.RUNNING)
LOSS = CopyEvent(at_ms=0, kind="retention", partition="a-0", text="offsets 0 to 9 are gone")


def _console(*, terminal: bool = False, height: int = 40) -> rich.console.Console:
    return rich.console.Console(
        file=io.StringIO(), width=160, height=height, force_terminal=terminal, highlight=False
    )


def _printed(show: Callable[[rich.console.Console], None]) -> str:
    console = _console()
    show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _progress(topics: int = 1, *, held: str = "") -> CopyProgress:
    names = [f"t{number:02}" for number in range(topics)]
    ranges = {
        TopicPartition(name, 0): PartitionRange(start_offset=0, end_offset=1000) for name in names
    }
    tracker = ProgressTracker(ranges, {name: name for name in names}, has_end=True, started_at=0.0)
    state = "held" if held else "leased"

    def at(position: int) -> CopySnapshot:
        view = PartitionView(
            remote="",
            task=0,
            state=state,
            position=position,
            records=position,
            bytes=position * 100,
            reason=held,
        )
        return CopySnapshot(
            partitions={f"{name}-0": view for name in names},
            lanes={name: {"plain": 7, "compacted": 1} for name in names},
        )

    tracker.update(at(0), 10.0)
    return tracker.update(at(500), 12.0)


def test_total_line_has_records_rates_lag_and_held_partitions() -> None:
    assert total_line(RUNNING, _progress()) == (
        "12.0 s  running  500 records  50.0 kB  250/s  25.0 kB/s  lag 500  ETA 2.0 s"
        "  1 topic  1 partition"
    )
    assert total_line(RUNNING, _progress(held="no leader")).endswith(
        "ETA ?  1 topic  1 partition  1 held"
    )


def test_held_and_halted_partitions_are_listed_and_counted_separately() -> None:
    held = [
        BlockedPartition(partition="a-0", reason="no leader", is_halted=False),
        BlockedPartition(partition="a-1", reason="gone", is_halted=True),
    ]
    assert held_lines(held) == ["a-0 is held: no leader", "a-1 is halted: gone"]
    assert held_counts(held) == ["1 held", "1 halted"]


def test_total_line_has_only_records_to_copy_while_spark_starts() -> None:
    ranges = {TopicPartition("a", 0): PartitionRange(start_offset=0, end_offset=1000)}
    progress = ProgressTracker(ranges, {"a": "a"}, has_end=True, started_at=0.0).update(
        CopySnapshot(), 3.0
    )
    line = total_line(DriverStatus(phase=DriverPhase.STARTING), progress)
    assert line == "3.0 s  Spark is starting  1,000 records to copy"


def test_line_screen_prints_a_line_per_interval_and_per_phase() -> None:
    console, now = _console(), [0.0]
    lines = LineScreen(console, lambda: now[0])
    for status in (
        RUNNING,
        RUNNING,
        DriverStatus(phase=DriverPhase.DRAINING),
        DriverStatus(phase=DriverPhase.DRAINING),
    ):
        lines.show(status, _progress())
    now[0] = LINE_INTERVAL_S
    lines.show(DriverStatus(phase=DriverPhase.DRAINING), _progress())
    lines.print_event(LOSS)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue().splitlines()
    assert [line.split("  ")[1] for line in printed[:3]] == ["running", "draining", "draining"]
    assert printed[3].endswith("a-0: retention: offsets 0 to 9 are gone")


def test_line_screen_prints_a_partition_once_when_it_becomes_held() -> None:
    console = _console()
    lines = LineScreen(console, lambda: 0.0)
    for held in ("", "no leader", "still no leader"):
        lines.show(RUNNING, _progress(7, held=held))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue().splitlines()
    assert printed[1] == "t00-0 is held: no leader"
    assert printed[6:] == ["and 2 more are held"]


def test_live_screen_has_a_bar_per_topic_and_a_reason_per_held_partition() -> None:
    console = _console(terminal=True)
    with open_screen(console) as screen:
        screen.show(RUNNING, _progress(held="no leader"))
        screen.print_message("a sentence")
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    for text in ("t00", "━", "50%", "250/s", "25.0 kB/s", "t00-0 is held: no leader", "a sentence"):
        assert text in printed


def test_topic_table_has_max_rows_and_counts_the_other_topics() -> None:
    printed = _printed(lambda console: console.print(topic_table(_progress(12), max_rows=3)))
    assert len(printed.splitlines()) == 5
    assert "and 9 topics more" in printed


def test_plan_shows_creations_start_positions_and_lost_offsets() -> None:
    request = copy_request(".*", on_loss=DataLossPolicy.SKIP)
    clusters = cluster_descriptions(
        [topic_view("a"), topic_view("b", 2), topic_view("c")], [topic_view("b"), topic_view("c")]
    )
    plan = plan_copy(request, clusters)
    ranges = {
        TopicPartition("a", 0): PartitionRange(start_offset=0, end_offset=1000),
        TopicPartition("b", 0): PartitionRange(
            start_offset=5, end_offset=1000, log_start_offset=9, is_in_ledger=True
        ),
        TopicPartition("b", 1): PartitionRange(start_offset=0, end_offset=1000),
        TopicPartition("c", 0): PartitionRange(
            start_offset=1000, end_offset=1000, is_in_ledger=True
        ),
    }
    printed = _printed(
        lambda console: text_output.show_plan(console, request, clusters, plan, ranges)
    )
    rows = [" ".join(line.split()) for line in printed.splitlines()]
    assert "a a 1 to be created: 1 replica earliest 1,000" in rows
    assert "b b 2 grows to 2 partitions stored position, new ones earliest 1,991" in rows
    assert "c c 1 exists stored position 0" in rows
    assert "b-0: A no longer holds the next offsets, 5 to 8; --on-loss skip decides." in rows
    assert "4 partitions, 2 tasks." in rows
    assert "Exactly once" not in printed


def test_exactly_once_plan_names_isolation_level_and_transactional_ids() -> None:
    request = copy_request("a", delivery=DeliveryMode.EXACTLY_ONCE)
    clusters = cluster_descriptions([topic_view("a")], [])
    plan = plan_copy(request, clusters)
    ranges = {TopicPartition("a", 0): PartitionRange(start_offset=0, end_offset=1)}
    printed = _printed(
        lambda console: text_output.show_plan(console, request, clusters, plan, ranges)
    )
    assert "isolation.level=read_committed" in printed
    assert "transactional ids begin with A-mm2-MirrorSourceConnector-." in printed


def test_summary_counts_records_lanes_and_events() -> None:
    printed = _printed(
        lambda console: text_output.show_summary(console, _progress(2), 2, [LOSS, LOSS])
    )
    rows = [" ".join(line.split()) for line in printed.splitlines()]
    assert "t00 t00 1 500 50.0 kB 500 plain 7, compacted 1" in rows
    assert "Copied 1,000 records, 100.0 kB, in 12.0 s" in printed
    assert "500/s, 50.0 kB/s, 2 tasks." in printed
    assert "Events: 2 retention." in printed


def test_positions_are_printed_per_topic() -> None:
    printed = _printed(lambda console: text_output.show_positions(console, _progress()))
    assert ["t00", "500", "500"] in [line.split() for line in printed.splitlines()]


def test_blocked_partitions_are_printed_with_advice() -> None:
    halted = BlockedPartition(partition="a-0", reason="gone", is_halted=True)
    held = BlockedPartition(partition="a-1", reason="grant Read on the topic", is_halted=False)
    printed = _printed(lambda console: text_output.show_blocked(console, [halted, held]))
    assert "a-0 is halted: gone\n" in printed
    assert "a-1 is held: grant Read on the topic\n" in printed
    assert "--on-loss skip continues" in printed
    assert "Fix the reasons above" in printed
    only = _printed(lambda console: text_output.show_blocked(console, [held]))
    assert "--on-loss" not in only
