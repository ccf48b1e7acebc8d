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

from sparkmirror.cli import figures
from sparkmirror.cli.copy_meter import Held, Progress, TopicProgress
from sparkmirror.cli.copy_run import Screen
from sparkmirror.copy.snapshot import Event
from sparkmirror.engine.status import Phase, Status

LINE_EVERY_S = 5.0
BAR_WIDTH = 24
LINES_BESIDE_TOPICS = 6
"""What a screen must hold besides one line for each topic: headings, totals, a prompt."""
MOST_HELD_SHOWN = 5

_UNKNOWN = "-"


@contextmanager
def screen(console: rich.console.Console) -> Iterator[Screen]:
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
        self._next = 0.0
        self._phase: Phase | None = None
        self._held: frozenset[str] = frozenset()

    def show(self, status: Status, progress: Progress) -> None:
        """Print the totals, if it is time or something has begun; and what is newly held."""
        for line in held_lines([one for one in progress.held if one.partition not in self._held]):
            self.say(line)
        self._held = frozenset(one.partition for one in progress.held)
        now = self._clock()
        if now < self._next and status.phase is self._phase:
            return
        self._next, self._phase = now + LINE_EVERY_S, status.phase
        self.say(total_line(status, progress))

    def tell(self, event: Event) -> None:
        """Print what happened."""
        self.say(event_line(event))

    def say(self, text: str) -> None:
        """Print a sentence."""
        self._console.print(text, soft_wrap=True)


class LiveScreen:
    """A table that is drawn over and over; what happens is printed above it."""

    def __init__(self, console: rich.console.Console, live: rich.live.Live) -> None:
        self._console = console
        self._live = live

    def show(self, status: Status, progress: Progress) -> None:
        """Draw everything anew."""
        room = max(self._console.height - LINES_BESIDE_TOPICS - MOST_HELD_SHOWN, 1)
        parts: list[rich.console.RenderableType] = [topic_table(progress, room)]
        parts += [rich.text.Text(line, style="yellow") for line in held_lines(progress.held)]
        parts.append(rich.text.Text(total_line(status, progress), style="bold"))
        self._live.update(rich.console.Group(*parts), refresh=True)

    def tell(self, event: Event) -> None:
        """Print what happened above the table."""
        self._console.print(rich.text.Text(event_line(event), style="yellow"), soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a sentence above the table."""
        self._console.print(rich.text.Text(text), soft_wrap=True)


def topic_table(progress: Progress, room: int) -> rich.table.Table:
    """One line for each topic; if there is no room for all, for those that have most to do."""
    table = rich.table.Table(box=None, pad_edge=False)
    for heading in ("topic", "", ""):
        table.add_column(heading, no_wrap=True)
    for heading in ("records", "records/s", "bytes/s", "lag", "ETA", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = _busiest(progress.topics, room)
    for topic in shown:
        table.add_row(
            rich.text.Text(_way(topic)),
            _bar(topic.fraction),
            percent(topic.fraction),
            figures.count(topic.copied),
            figures.per_second(topic.records_per_s),
            figures.size_per_second(topic.bytes_per_s),
            figures.count(topic.lag),
            eta(topic.eta_s),
            "  ".join(held_counts(topic.held)),
        )
    if len(shown) < len(progress.topics):
        table.add_row(f"and {len(progress.topics) - len(shown)} topics more")
    return table


def total_line(status: Status, progress: Progress) -> str:
    """Everything in one line."""
    if status.phase is Phase.STARTING and not progress.records:
        to_copy = f"{figures.counted(progress.lag, 'record')} to copy"
        return f"{figures.duration(progress.elapsed_s)}  Spark is starting  {to_copy}"
    parts = [
        figures.duration(progress.elapsed_s),
        str(status.phase),
        figures.counted(progress.records, "record"),
        figures.size(progress.bytes),
        figures.per_second(progress.records_per_s),
        figures.size_per_second(progress.bytes_per_s),
        f"lag {figures.count(progress.lag)}",
        f"ETA {eta(progress.eta_s)}",
        figures.counted(len(progress.topics), "topic"),
        figures.counted(progress.partitions, "partition"),
    ]
    return "  ".join([*parts, *held_counts(progress.held)])


def held_counts(held: Sequence[Held]) -> list[str]:
    """How many partitions wait to be tried again, and how many for somebody to decide."""
    halted = sum(one.is_halted for one in held)
    counts = {"held": len(held) - halted, "halted": halted}
    return [f"{number} {what}" for what, number in counts.items() if number]


def held_lines(held: Sequence[Held]) -> list[str]:
    """The first few partitions that do not move, each with its reason."""
    lines = [
        f"{one.partition} is {'halted' if one.is_halted else 'held'}: {one.reason}"
        for one in held[:MOST_HELD_SHOWN]
    ]
    more = len(held) - MOST_HELD_SHOWN
    return [*lines, f"and {more} more are held"] if more > 0 else lines


def event_line(event: Event) -> str:
    """One thing that happened, with its time."""
    at = datetime.fromtimestamp(event.at_ms / 1000).astimezone()
    return f"{at:%H:%M:%S} {event.partition}: {event.kind}: {event.text}"


def percent(fraction: float) -> str:
    """A part of the whole; never 100 % before it is all."""
    return f"{int(fraction * 100)}%"


def eta(seconds: float | None) -> str:
    """How long it will take, as far as that is known."""
    if seconds is None:
        return _UNKNOWN
    return "done" if seconds == 0 else figures.duration(seconds)


def _busiest(topics: Sequence[TopicProgress], room: int) -> Sequence[TopicProgress]:
    if len(topics) <= room:
        return topics
    return sorted(topics, key=lambda topic: (-len(topic.held), -topic.lag, topic.topic))[:room]


def _bar(fraction: float) -> rich.progress_bar.ProgressBar:
    return rich.progress_bar.ProgressBar(
        1.0, fraction, width=BAR_WIDTH, complete_style="cyan", finished_style="green"
    )


def _way(topic: TopicProgress) -> str:
    return topic.topic if topic.topic == topic.remote else f"{topic.topic} → {topic.remote}"
