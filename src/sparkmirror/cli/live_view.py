"""The live view of a running worker: connectors, states, topics with bars, rates, lag and ETA.

The numbers come from polls of the worker's REST API. A rate is the mean of RATE_WINDOW_S.
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
        """Seconds until the lag is 0; None while no record is copied."""
        if self.lag == 0:
            return 0.0
        return self.lag / self.records_per_s if self.records_per_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveView:
    """The result of one poll: all connectors and all topics."""

    connectors: tuple[ConnectorSummary, ...]
    topics: tuple[TopicRow, ...]

    @property
    def records(self) -> int:
        """Copied records of all topics."""
        return sum(topic.records for topic in self.topics)

    @property
    def lag(self) -> int:
        """Records of all topics that are not copied yet."""
        return sum(topic.lag for topic in self.topics)

    @property
    def is_healthy(self) -> bool:
        """Whether every connector and task runs and no connector reports an error."""
        return all(
            not connector.errors and {connector.state, *connector.tasks} == {_RUNNING}
            for connector in self.connectors
        )


class WorkerPoller:
    """Polls a worker's REST API and computes rates from the last polls."""

    def __init__(self, api: WorkerRestClient) -> None:
        self._client = api
        self._samples: dict[tuple[str, str], deque[tuple[float, int, int]]] = defaultdict(deque)

    def poll(self, now: float) -> LiveView:
        """Return the state of all connectors and topics. Raises RequestFailed."""
        connectors = self._client.connectors()
        rows = [
            self._topic_row(connector.name, topic, partitions, now)
            for connector in connectors
            for topic, partitions in _by_topic(self._client.partitions(connector.name)).items()
        ]
        return LiveView(connectors=connectors, topics=tuple(rows))

    def _topic_row(
        self, connector: str, topic: str, partitions: list[PartitionSummary], now: float
    ) -> TopicRow:
        records = sum(partition.records for partition in partitions)
        size = sum(partition.bytes for partition in partitions)
        lag = sum(partition.lag for partition in partitions)
        samples = self._samples[connector, topic]
        samples.append((now, records, size))
        while samples[0][0] < now - RATE_WINDOW_S:
            samples.popleft()
        first, first_records, first_size = samples[0]
        elapsed_s = max(now - first, 1e-9)
        return TopicRow(
            connector=connector,
            topic=topic,
            remote_topic=partitions[0].remote_topic,
            records=records,
            lag=lag,
            fraction=records / (records + lag) if records + lag else 1.0,
            records_per_s=max(records - first_records, 0) / elapsed_s if now > first else 0.0,
            bytes_per_s=max(size - first_size, 0) / elapsed_s if now > first else 0.0,
            reasons=tuple(
                f"{partition.topic}-{partition.partition}: {partition.reason}"
                for partition in partitions
                if partition.reason
            ),
        )


def _by_topic(partitions: tuple[PartitionSummary, ...]) -> dict[str, list[PartitionSummary]]:
    topics: dict[str, list[PartitionSummary]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append(partition)
    return dict(sorted(topics.items()))


def render(view: LiveView) -> rich.console.RenderableType:
    """Return the view as tables for a terminal, with the first errors below them."""
    parts: list[rich.console.RenderableType] = [_connector_table(view), _topic_table(view)]
    reasons = [
        f"{connector.name}: {error}" for connector in view.connectors for error in connector.errors
    ]
    reasons += [reason for topic in view.topics for reason in topic.reasons]
    parts += [rich.text.Text(reason, style="yellow") for reason in reasons[:MAX_REASONS]]
    return rich.console.Group(*parts)


def summary_line(view: LiveView) -> str:
    """Return the view as one line, for output that is not a terminal."""
    running = sum(connector.state == _RUNNING for connector in view.connectors)
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
    for connector in view.connectors:
        style = "green" if connector.state == _RUNNING else "yellow"
        tasks = ", ".join(
            f"{connector.tasks.count(state)} {state}" for state in dict.fromkeys(connector.tasks)
        )
        state = rich.text.Text(connector.state, style=style)
        table.add_row(rich.text.Text(connector.name), state, tasks)
    return table


def _topic_table(view: LiveView) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("topic", overflow="fold")  # the only column that wraps in a narrow terminal
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
