"""Shows a running copy: a live table on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import rich.console
import rich.live
import rich.progress_bar
import rich.table
import rich.text

from sparkmirror.cli import number_format
from sparkmirror.cli.copy.completion import BlockedPartition
from sparkmirror.cli.copy.copy_run import Screen
from sparkmirror.cli.copy.progress_tracker import CopyProgress, TopicProgress
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus

LINE_INTERVAL_S = 5.0
BAR_WIDTH = 24
LINES_BESIDE_TOPICS = 6
"""Lines on the screen besides one per topic: headings, totals, a prompt."""
MAX_HELD_SHOWN = 5


@contextmanager
def open_screen(console: rich.console.Console) -> Iterator[Screen]:
    """Yield the live screen on a terminal, the line screen otherwise."""
    if not console.is_terminal:
        yield LineScreen(console, time.monotonic)
        return
    with rich.live.Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveScreen(console, live)


class LineScreen:
    """Prints one line every few seconds, and one for each event."""

    def __init__(self, console: rich.console.Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._next_line_at = 0.0
        self._phase: DriverPhase | None = None
        self._held: frozenset[str] = frozenset()

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        """Print newly blocked partitions; print the totals if they are due or the phase changed."""
        for line in held_lines(
            [block for block in progress.held if block.partition not in self._held]
        ):
            self.print_message(line)
        self._held = frozenset(block.partition for block in progress.held)
        now = self._clock()
        if now < self._next_line_at and status.phase is self._phase:
            return
        self._next_line_at, self._phase = now + LINE_INTERVAL_S, status.phase
        self.print_message(total_line(status, progress))

    def print_event(self, event: CopyEvent) -> None:
        """Print an event."""
        self.print_message(event_line(event))

    def print_message(self, text: str) -> None:
        """Print a sentence."""
        self._console.print(text, soft_wrap=True)


class LiveScreen:
    """A table that is redrawn; events are printed above it."""

    def __init__(self, console: rich.console.Console, live: rich.live.Live) -> None:
        self._console = console
        self._live = live

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        """Redraw the table."""
        lines = max(self._console.height - LINES_BESIDE_TOPICS - MAX_HELD_SHOWN, 1)
        parts: list[rich.console.RenderableType] = [topic_table(progress, lines)]
        parts += [rich.text.Text(line, style="yellow") for line in held_lines(progress.held)]
        parts.append(rich.text.Text(total_line(status, progress), style="bold"))
        self._live.update(rich.console.Group(*parts), refresh=True)

    def print_event(self, event: CopyEvent) -> None:
        """Print an event above the table."""
        self._console.print(rich.text.Text(event_line(event), style="yellow"), soft_wrap=True)

    def print_message(self, text: str) -> None:
        """Print a sentence above the table."""
        self._console.print(rich.text.Text(text), soft_wrap=True)


def topic_table(progress: CopyProgress, max_rows: int) -> rich.table.Table:
    """One row per topic; if there are more than `max_rows`, those with the most lag."""
    table = rich.table.Table(box=None, pad_edge=False)
    for heading in ("topic", "", ""):
        table.add_column(heading, no_wrap=True)
    for heading in ("records", "records/s", "bytes/s", "lag", "ETA", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = _busiest(progress.topics, max_rows)
    for topic in shown:
        table.add_row(
            rich.text.Text(_topic_label(topic)),
            progress_bar(topic.fraction, BAR_WIDTH),
            format_percent(topic.fraction),
            number_format.count(topic.records),
            number_format.per_second(topic.records_per_s),
            number_format.size_per_second(topic.bytes_per_s),
            number_format.count(topic.lag),
            format_eta(topic.eta_s),
            "  ".join(held_counts(topic.held)),
        )
    if len(shown) < len(progress.topics):
        table.add_row(f"and {len(progress.topics) - len(shown)} topics more")
    return table


def total_line(status: DriverStatus, progress: CopyProgress) -> str:
    """The totals in one line."""
    if status.phase is DriverPhase.STARTING and not progress.records:
        to_copy = f"{number_format.count_with_noun(progress.lag, 'record')} to copy"
        return f"{number_format.duration(progress.elapsed_s)}  Spark is starting  {to_copy}"
    parts = [
        number_format.duration(progress.elapsed_s),
        str(status.phase),
        number_format.count_with_noun(progress.records, "record"),
        number_format.size(progress.bytes),
        number_format.per_second(progress.records_per_s),
        number_format.size_per_second(progress.bytes_per_s),
        f"lag {number_format.count(progress.lag)}",
        f"ETA {format_eta(progress.eta_s)}",
        number_format.count_with_noun(len(progress.topics), "topic"),
        number_format.count_with_noun(progress.partitions, "partition"),
    ]
    return "  ".join([*parts, *held_counts(progress.held)])


def held_counts(held: Sequence[BlockedPartition]) -> list[str]:
    """The numbers of held and of halted partitions, as texts."""
    halted = sum(block.is_halted for block in held)
    counts = {"held": len(held) - halted, "halted": halted}
    return [f"{number} {what}" for what, number in counts.items() if number]


def held_lines(held: Sequence[BlockedPartition]) -> list[str]:
    """The first few blocked partitions, each with its reason."""
    lines = [blocked_line(block) for block in held[:MAX_HELD_SHOWN]]
    more = len(held) - MAX_HELD_SHOWN
    return [*lines, f"and {more} more are held"] if more > 0 else lines


def blocked_line(block: BlockedPartition) -> str:
    """One blocked partition with its reason."""
    state = "halted" if block.is_halted else "held"
    return f"{block.partition} is {state}: {block.reason or 'no reason given'}"


def event_line(event: CopyEvent) -> str:
    """An event with its time."""
    at = datetime.fromtimestamp(event.at_ms / 1000).astimezone()
    return f"{at:%H:%M:%S} {event.partition}: {event.kind}: {event.text}"


def format_percent(fraction: float | None) -> str:
    """Percent, rounded down: 100 % only at the end; "?" if unknown."""
    return number_format.UNKNOWN if fraction is None else f"{int(fraction * 100)}%"


def format_eta(seconds: float | None) -> str:
    """The remaining time; "?" if unknown."""
    if seconds is None:
        return number_format.UNKNOWN
    return "done" if seconds == 0 else number_format.duration(seconds)


def _busiest(topics: Sequence[TopicProgress], max_rows: int) -> Sequence[TopicProgress]:
    if len(topics) <= max_rows:
        return topics
    return sorted(topics, key=_urgency)[:max_rows]


def _urgency(topic: TopicProgress) -> tuple[int, float, str]:
    """The sort key: topics with held partitions, then those with an unknown or a large lag."""
    lag = float("inf") if topic.lag is None else topic.lag
    return -len(topic.held), -lag, topic.topic


def progress_bar(fraction: float | None, width: int) -> rich.console.RenderableType:
    """The bar of a topic; no bar if the fraction is unknown."""
    if fraction is None:
        return ""
    return rich.progress_bar.ProgressBar(
        1.0, fraction, width=width, complete_style="cyan", finished_style="green"
    )


def _topic_label(topic: TopicProgress) -> str:
    return (
        topic.topic
        if topic.topic == topic.remote_topic
        else (f"{topic.topic} → {topic.remote_topic}")
    )
