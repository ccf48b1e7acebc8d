"""A running mirror as people see it: flows, states, topics with bars, rates, lag and ETA.

Figures come from one look at a worker's REST API after the other; rates are of the last few looks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import rich.console
import rich.progress_bar
import rich.table
import rich.text

from sparkmirror.cli import figures
from sparkmirror.cli.copy_screen import eta
from sparkmirror.cli.mirror_api import ConnectorState, MirrorApi, PartitionState

WINDOW_S = 5.0
SOURCE = "MirrorSourceConnector"
MOST_REASONS = 5
NARROW_BAR = 12
_WELL = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLine:
    """One topic of one source connector."""

    connector: str
    topic: str
    remote: str
    records: int
    lag: int
    fraction: float
    records_per_s: float
    bytes_per_s: float
    reasons: tuple[str, ...]

    @property
    def eta_s(self) -> float | None:
        """When it will have caught up; None as long as nothing moves."""
        if self.lag == 0:
            return 0.0
        return self.lag / self.records_per_s if self.records_per_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything at one moment."""

    connectors: tuple[ConnectorState, ...]
    topics: tuple[TopicLine, ...]

    @property
    def records(self) -> int:
        """Copied, of all topics."""
        return sum(topic.records for topic in self.topics)

    @property
    def lag(self) -> int:
        """Still to go, of all topics."""
        return sum(topic.lag for topic in self.topics)

    @property
    def is_well(self) -> bool:
        """Whether every connector and task runs and nobody has a remark."""
        return all(
            not one.remarks and {one.state, *one.tasks} == {_WELL} for one in self.connectors
        )


class Watcher:
    """Looks at a worker again and again, and works out rates."""

    def __init__(self, api: MirrorApi) -> None:
        self._api = api
        self._seen: dict[tuple[str, str], deque[tuple[float, int, int]]] = defaultdict(deque)

    def look(self, now: float) -> View:
        """Ask for everything. RequestFailed if the worker cannot be asked."""
        connectors = self._api.connectors()
        lines = [
            self._line(one.name, topic, partitions, now)
            for one in connectors
            for topic, partitions in _by_topic(self._api.partitions(one.name)).items()
        ]
        return View(connectors=connectors, topics=tuple(lines))

    def _line(
        self, connector: str, topic: str, partitions: list[PartitionState], now: float
    ) -> TopicLine:
        records = sum(one.records for one in partitions)
        size = sum(one.bytes for one in partitions)
        lag = sum(one.lag for one in partitions)
        seen = self._seen[connector, topic]
        seen.append((now, records, size))
        while seen[0][0] < now - WINDOW_S:
            seen.popleft()
        then, records_then, size_then = seen[0]
        passed_s = max(now - then, 1e-9)
        return TopicLine(
            connector=connector,
            topic=topic,
            remote=partitions[0].remote_topic,
            records=records,
            lag=lag,
            fraction=records / (records + lag) if records + lag else 1.0,
            records_per_s=max(records - records_then, 0) / passed_s if now > then else 0.0,
            bytes_per_s=max(size - size_then, 0) / passed_s if now > then else 0.0,
            reasons=tuple(
                f"{one.topic}-{one.partition}: {one.reason}" for one in partitions if one.reason
            ),
        )


def _by_topic(partitions: tuple[PartitionState, ...]) -> dict[str, list[PartitionState]]:
    topics: dict[str, list[PartitionState]] = defaultdict(list)
    for one in partitions:
        topics[one.topic].append(one)
    return dict(sorted(topics.items()))


def rendered(view: View) -> rich.console.RenderableType:
    """The view for a terminal."""
    parts: list[rich.console.RenderableType] = [_states(view), _topics(view)]
    remarks = [f"{one.name}: {text}" for one in view.connectors for text in one.remarks]
    remarks += [reason for topic in view.topics for reason in topic.reasons]
    parts += [rich.text.Text(remark, style="yellow") for remark in remarks[:MOST_REASONS]]
    return rich.console.Group(*parts)


def line(view: View) -> str:
    """The view in one line, where lines stay."""
    running = sum(one.state == _WELL for one in view.connectors)
    rate = sum(topic.records_per_s for topic in view.topics)
    return "  ".join(
        (
            f"{running} of {figures.counted(len(view.connectors), 'connector')} running",
            f"{figures.counted(view.records, 'record')} mirrored",
            figures.per_second(rate),
            f"lag {figures.count(view.lag)}",
        )
    )


def _states(view: View) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    for heading in ("connector", "state", "tasks"):
        table.add_column(heading, no_wrap=True)
    for one in view.connectors:
        style = "green" if one.state == _WELL else "yellow"
        tasks = ", ".join(f"{one.tasks.count(state)} {state}" for state in dict.fromkeys(one.tasks))
        table.add_row(rich.text.Text(one.name), rich.text.Text(one.state, style=style), tasks)
    return table


def _topics(view: View) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("topic", overflow="fold")  # what gives way where there is little room
    table.add_column("", no_wrap=True)
    for heading in ("records", "records/s", "bytes/s", "lag", "ETA"):
        table.add_column(heading, justify="right", no_wrap=True)
    for topic in view.topics:
        table.add_row(
            rich.text.Text(f"{topic.topic} → {topic.remote}"),
            rich.progress_bar.ProgressBar(
                1.0,
                topic.fraction,
                width=NARROW_BAR,
                complete_style="cyan",
                finished_style="green",
            ),
            figures.count(topic.records),
            figures.per_second(topic.records_per_s),
            figures.size_per_second(topic.bytes_per_s),
            figures.count(topic.lag),
            eta(topic.eta_s),
        )
    return table
