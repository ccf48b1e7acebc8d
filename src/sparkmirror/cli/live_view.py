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

from sparkmirror.cli import number_format
from sparkmirror.cli.copy.screen import format_eta
from sparkmirror.cli.worker_rest_client import ConnectorSummary, PartitionSummary, WorkerRestClient

RATE_WINDOW_S = 5.0
SOURCE = "MirrorSourceConnector"
MAX_REASONS = 5
BAR_WIDTH = 12
_RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """One topic of one source connector."""

    connector: str
    topic: str
    remote_topic: str
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
class LiveView:
    """Everything at one moment."""

    connectors: tuple[ConnectorSummary, ...]
    topics: tuple[TopicRow, ...]

    @property
    def records(self) -> int:
        """Copied, of all topics."""
        return sum(topic.records for topic in self.topics)

    @property
    def lag(self) -> int:
        """Still to go, of all topics."""
        return sum(topic.lag for topic in self.topics)

    @property
    def is_healthy(self) -> bool:
        """Whether every connector and task runs and nobody has a remark."""
        return all(
            not one.errors and {one.state, *one.tasks} == {_RUNNING} for one in self.connectors
        )


class WorkerPoller:
    """Looks at a worker again and again, and works out rates."""

    def __init__(self, api: WorkerRestClient) -> None:
        self._client = api
        self._samples: dict[tuple[str, str], deque[tuple[float, int, int]]] = defaultdict(deque)

    def poll(self, now: float) -> LiveView:
        """Ask for everything. RequestFailed if the worker cannot be asked."""
        connectors = self._client.connectors()
        lines = [
            self._topic_row(one.name, topic, partitions, now)
            for one in connectors
            for topic, partitions in _by_topic(self._client.partitions(one.name)).items()
        ]
        return LiveView(connectors=connectors, topics=tuple(lines))

    def _topic_row(
        self, connector: str, topic: str, partitions: list[PartitionSummary], now: float
    ) -> TopicRow:
        records = sum(one.records for one in partitions)
        size = sum(one.bytes for one in partitions)
        lag = sum(one.lag for one in partitions)
        seen = self._samples[connector, topic]
        seen.append((now, records, size))
        while seen[0][0] < now - RATE_WINDOW_S:
            seen.popleft()
        then, records_then, size_then = seen[0]
        passed_s = max(now - then, 1e-9)
        return TopicRow(
            connector=connector,
            topic=topic,
            remote_topic=partitions[0].remote_topic,
            records=records,
            lag=lag,
            fraction=records / (records + lag) if records + lag else 1.0,
            records_per_s=max(records - records_then, 0) / passed_s if now > then else 0.0,
            bytes_per_s=max(size - size_then, 0) / passed_s if now > then else 0.0,
            reasons=tuple(
                f"{one.topic}-{one.partition}: {one.reason}" for one in partitions if one.reason
            ),
        )


def _by_topic(partitions: tuple[PartitionSummary, ...]) -> dict[str, list[PartitionSummary]]:
    topics: dict[str, list[PartitionSummary]] = defaultdict(list)
    for one in partitions:
        topics[one.topic].append(one)
    return dict(sorted(topics.items()))


def render(view: LiveView) -> rich.console.RenderableType:
    """The view for a terminal."""
    parts: list[rich.console.RenderableType] = [_connector_table(view), _topic_table(view)]
    remarks = [f"{one.name}: {text}" for one in view.connectors for text in one.errors]
    remarks += [reason for topic in view.topics for reason in topic.reasons]
    parts += [rich.text.Text(remark, style="yellow") for remark in remarks[:MAX_REASONS]]
    return rich.console.Group(*parts)


def summary_line(view: LiveView) -> str:
    """The view in one line, where lines stay."""
    running = sum(one.state == _RUNNING for one in view.connectors)
    rate = sum(topic.records_per_s for topic in view.topics)
    return "  ".join(
        (
            (
                f"{running} of {number_format.count_with_noun(len(view.connectors), 'connector')}"
                f" running"
            ),
            f"{number_format.count_with_noun(view.records, 'record')} mirrored",
            number_format.per_second(rate),
            f"lag {number_format.count(view.lag)}",
        )
    )


def _connector_table(view: LiveView) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    for heading in ("connector", "state", "tasks"):
        table.add_column(heading, no_wrap=True)
    for one in view.connectors:
        style = "green" if one.state == _RUNNING else "yellow"
        tasks = ", ".join(f"{one.tasks.count(state)} {state}" for state in dict.fromkeys(one.tasks))
        table.add_row(rich.text.Text(one.name), rich.text.Text(one.state, style=style), tasks)
    return table


def _topic_table(view: LiveView) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("topic", overflow="fold")  # what gives way where there is little room
    table.add_column("", no_wrap=True)
    for heading in ("records", "records/s", "bytes/s", "lag", "ETA"):
        table.add_column(heading, justify="right", no_wrap=True)
    for topic in view.topics:
        table.add_row(
            rich.text.Text(f"{topic.topic} → {topic.remote_topic}"),
            rich.progress_bar.ProgressBar(
                1.0,
                topic.fraction,
                width=BAR_WIDTH,
                complete_style="cyan",
                finished_style="green",
            ),
            number_format.count(topic.records),
            number_format.per_second(topic.records_per_s),
            number_format.size_per_second(topic.bytes_per_s),
            number_format.count(topic.lag),
            format_eta(topic.eta_s),
        )
    return table
