"""A running copy as people see it: bars on a terminal, a line every few seconds elsewhere."""

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
from sparkmirror.cli.copy.progress import CopyProgress, HeldPartition, TopicProgress
from sparkmirror.cli.copy.run import Screen
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus

LINE_INTERVAL_S = 5.0
BAR_WIDTH = 24
LINES_BESIDE_TOPICS = 6
"""What a screen must hold besides one line for each topic: headings, totals, a prompt."""
MAX_HELD_SHOWN = 5

_UNKNOWN = "-"


@contextmanager
def open_screen(console: rich.console.Console) -> Iterator[Screen]:
    """Choose by where the output goes."""
    if not console.is_terminal:
        yield LineScreen(console, time.monotonic)
        return
    with rich.live.Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveScreen(console, live)


class LineScreen:
    """One line every few seconds, and one for each thing that happens."""

    def __init__(self, console: rich.console.Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._next_line_at = 0.0
        self._phase: DriverPhase | None = None
        self._held: frozenset[str] = frozenset()

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        """Print the totals, if it is time or something has begun; and what is newly held."""
        for line in held_lines([one for one in progress.held if one.partition not in self._held]):
            self.print_message(line)
        self._held = frozenset(one.partition for one in progress.held)
        now = self._clock()
        if now < self._next_line_at and status.phase is self._phase:
            return
        self._next_line_at, self._phase = now + LINE_INTERVAL_S, status.phase
        self.print_message(total_line(status, progress))

    def print_event(self, event: CopyEvent) -> None:
        """Print what happened."""
        self.print_message(event_line(event))

    def print_message(self, text: str) -> None:
        """Print a sentence."""
        self._console.print(text, soft_wrap=True)


class LiveScreen:
    """A table that is drawn over and over; what happens is printed above it."""

    def __init__(self, console: rich.console.Console, live: rich.live.Live) -> None:
        self._console = console
        self._live = live

    def show(self, status: DriverStatus, progress: CopyProgress) -> None:
        """Draw everything anew."""
        room = max(self._console.height - LINES_BESIDE_TOPICS - MAX_HELD_SHOWN, 1)
        parts: list[rich.console.RenderableType] = [topic_table(progress, room)]
        parts += [rich.text.Text(line, style="yellow") for line in held_lines(progress.held)]
        parts.append(rich.text.Text(total_line(status, progress), style="bold"))
        self._live.update(rich.console.Group(*parts), refresh=True)

    def print_event(self, event: CopyEvent) -> None:
        """Print what happened above the table."""
        self._console.print(rich.text.Text(event_line(event), style="yellow"), soft_wrap=True)

    def print_message(self, text: str) -> None:
        """Print a sentence above the table."""
        self._console.print(rich.text.Text(text), soft_wrap=True)


def topic_table(progress: CopyProgress, room: int) -> rich.table.Table:
    """One line for each topic; if there is no room for all, for those that have most to do."""
    table = rich.table.Table(box=None, pad_edge=False)
    for heading in ("topic", "", ""):
        table.add_column(heading, no_wrap=True)
    for heading in ("records", "records/s", "bytes/s", "lag", "ETA", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = _busiest(progress.topics, room)
    for topic in shown:
        table.add_row(
            rich.text.Text(_topic_label(topic)),
            _bar(topic.fraction),
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
    """Everything in one line."""
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


def held_counts(held: Sequence[HeldPartition]) -> list[str]:
    """How many partitions wait to be tried again, and how many for somebody to decide."""
    halted = sum(one.is_halted for one in held)
    counts = {"held": len(held) - halted, "halted": halted}
    return [f"{number} {what}" for what, number in counts.items() if number]


def held_lines(held: Sequence[HeldPartition]) -> list[str]:
    """The first few partitions that do not move, each with its reason."""
    lines = [
        f"{one.partition} is {'halted' if one.is_halted else 'held'}: {one.reason}"
        for one in held[:MAX_HELD_SHOWN]
    ]
    more = len(held) - MAX_HELD_SHOWN
    return [*lines, f"and {more} more are held"] if more > 0 else lines


def event_line(event: CopyEvent) -> str:
    """One thing that happened, with its time."""
    at = datetime.fromtimestamp(event.at_ms / 1000).astimezone()
    return f"{at:%H:%M:%S} {event.partition}: {event.kind}: {event.text}"


def format_percent(fraction: float) -> str:
    """A part of the whole; never 100 % before it is all."""
    return f"{int(fraction * 100)}%"


def format_eta(seconds: float | None) -> str:
    """How long it will take, as far as that is known."""
    if seconds is None:
        return _UNKNOWN
    return "done" if seconds == 0 else number_format.duration(seconds)


def _busiest(topics: Sequence[TopicProgress], room: int) -> Sequence[TopicProgress]:
    if len(topics) <= room:
        return topics
    return sorted(topics, key=lambda topic: (-len(topic.held), -topic.lag, topic.topic))[:room]


def _bar(fraction: float) -> rich.progress_bar.ProgressBar:
    return rich.progress_bar.ProgressBar(
        1.0, fraction, width=BAR_WIDTH, complete_style="cyan", finished_style="green"
    )


def _topic_label(topic: TopicProgress) -> str:
    return (
        topic.topic
        if topic.topic == topic.remote_topic
        else (f"{topic.topic} → {topic.remote_topic}")
    )
