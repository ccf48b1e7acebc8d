"""The live view of a running worker: connectors, states, topics with bars, rates, lag and ETA.

The numbers come from polls of the worker's REST API. A rate is the mean of RATE_WINDOW_S. Below the
tables are the causes of what does not run, and the latest events. An unknown number is "?".
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import rich.console
import rich.table
import rich.text

from sparkmirror.cli import number_format
from sparkmirror.cli.copy.screen import format_eta, progress_bar
from sparkmirror.cli.worker_problems import HEALTHY, problem_lines, unreachable_lines
from sparkmirror.cli.worker_rest_client import (
    NOT_FOUND,
    ConnectorSummary,
    EventSummary,
    HealthSummary,
    PartitionSummary,
    ProgressSummary,
    WorkerRestClient,
)
from sparkmirror.copy.partition_problems_by_cause import first_causes
from sparkmirror.copy.snapshot import total_lag
from sparkmirror.errors import ConnectRestError, RequestFailed

RATE_WINDOW_S = 5.0
MAX_EVENTS = 5
BAR_WIDTH = 12
STUCK = "stuck"
WAITING = "waiting"
_RUNNING = "RUNNING"
_STARTING = "starting"
_REQUESTED_STATES = ("paused", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """One topic of one source connector."""

    connector: str
    topic: str
    remote_topic: str
    records: int
    lag: int | None
    """None if it is unknown for one partition."""
    requested_state: str = ""
    """paused or stopped, if all partitions are; else empty."""
    stuck_state: str = ""
    """STUCK if a partition has a reason why it is not copied, WAITING if all such partitions wait
    for a task; else empty."""
    records_per_s: float
    bytes_per_s: float
    skipped: int = 0
    """Records that failed in transforms and are not copied."""
    dead_letters: int = 0
    """Those of them that the topic for dead letters has."""

    @property
    def fraction(self) -> float | None:
        """The part that is copied; None while the lag is unknown.

        None also if all is copied and a partition has a reason: a full bar says that all is well.
        """
        if self.lag is None or (self.is_stuck and self.lag == 0):
            return None
        return self.records / (self.records + self.lag) if self.lag else 1.0

    @property
    def eta_s(self) -> float | None:
        """Seconds until the lag is 0; None while no record is copied or the lag is unknown.

        A topic with a partition that is not copied has none, whatever its lag.
        """
        if self.is_stuck:
            return None
        if self.lag == 0:
            return 0.0
        return self.lag / self.records_per_s if self.lag and self.records_per_s > 0 else None

    @property
    def remaining_time(self) -> str:
        """The last column: what keeps the topic from being copied, or the time until lag 0."""
        return self.requested_state or self.stuck_state or format_eta(self.eta_s)

    @property
    def is_stuck(self) -> bool:
        """Whether a partition has a reason why it is not copied."""
        return bool(self.stuck_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLiveView:
    """The result of one poll: the worker, all connectors and all topics."""

    health: HealthSummary
    connectors: tuple[ConnectorSummary, ...]
    topics: tuple[TopicRow, ...]
    problems: tuple[str, ...] = ()
    """One line per cause."""
    events: tuple[EventSummary, ...] = ()
    """The latest ones of all connectors, oldest first."""

    @property
    def records(self) -> int:
        """Copied records of all topics."""
        return sum(topic.records for topic in self.topics)

    @property
    def lag(self) -> int | None:
        """Records of all topics that are not copied yet; None if unknown or without topics."""
        return total_lag(topic.lag for topic in self.topics) if self.topics else None

    @property
    def is_healthy(self) -> bool:
        """Whether the worker is healthy, all connectors and tasks run, and every lag is known.

        A connector that the operator paused or stopped does not run.
        """
        return (
            self.health.status == HEALTHY
            and not self.problems
            and all({c.state, *c.tasks} == {_RUNNING} for c in self.connectors)
            and all(topic.lag is not None for topic in self.topics)
        )


class WorkerPoller:
    """Polls a worker's REST API and computes rates from the last polls."""

    def __init__(self, api: WorkerRestClient) -> None:
        self._client = api
        self._samples: dict[tuple[str, str], deque[tuple[float, int, int]]] = defaultdict(deque)

    def poll(self, now: float) -> WorkerLiveView:
        """Return the state of the worker, its connectors and topics. Raises RequestFailed."""
        health = self._client.health()
        connectors = self._connectors(health)
        progress, events = self._progress(connectors)
        partitions = {name: one.partitions for name, one in progress.items()}
        rows = [
            self._topic_row(name, topic, of_topic, now)
            for name, of_connector in partitions.items()
            for topic, of_topic in _by_topic(of_connector).items()
        ]
        return WorkerLiveView(
            health=health,
            connectors=connectors,
            topics=tuple(rows),
            problems=(
                *unreachable_lines(one.unreachable_workers for one in progress.values()),
                *problem_lines(health, connectors, partitions),
            ),
            events=tuple(sorted(events, key=lambda event: event.time)[-MAX_EVENTS:]),
        )

    def _connectors(self, health: HealthSummary) -> tuple[ConnectorSummary, ...]:
        """Return the connectors. A worker that starts may not know them yet."""
        try:
            return self._client.connectors()
        except RequestFailed:
            if health.status == _STARTING:
                return ()
            raise

    def _progress(
        self, connectors: Iterable[ConnectorSummary]
    ) -> tuple[dict[str, ProgressSummary], list[EventSummary]]:
        """Return the progress of each connector, and all events."""
        progress: dict[str, ProgressSummary] = {}
        events: list[EventSummary] = []
        for connector in connectors:
            if not connector.has_partitions:
                continue
            try:
                progress[connector.name] = self._client.progress(connector.name)
                events += self._client.events(connector.name)
            except ConnectRestError as error:
                if error.status != NOT_FOUND:  # it was deleted since the connectors were listed
                    raise
        return progress, events

    def _topic_row(
        self, connector: str, topic: str, partitions: Sequence[PartitionSummary], now: float
    ) -> TopicRow:
        records = sum(partition.records for partition in partitions)
        size = sum(partition.bytes for partition in partitions)
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
            lag=total_lag(partition.lag for partition in partitions),
            requested_state=_requested_state(partitions),
            stuck_state=_stuck_state(partitions),
            records_per_s=max(records - first_records, 0) / elapsed_s if now > first else 0.0,
            bytes_per_s=max(size - first_size, 0) / elapsed_s if now > first else 0.0,
            skipped=sum(partition.skipped for partition in partitions),
            dead_letters=sum(partition.dead_letters for partition in partitions),
        )


def _requested_state(partitions: Sequence[PartitionSummary]) -> str:
    states = {partition.state for partition in partitions}
    return states.pop() if len(states) == 1 and states <= {*_REQUESTED_STATES} else ""


def _stuck_state(partitions: Sequence[PartitionSummary]) -> str:
    states = {partition.state for partition in partitions if partition.reason}
    if not states:
        return ""
    return WAITING if states == {WAITING} else STUCK


def _by_topic(partitions: Sequence[PartitionSummary]) -> dict[str, list[PartitionSummary]]:
    topics: dict[str, list[PartitionSummary]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append(partition)
    return dict(sorted(topics.items()))


def render(view: WorkerLiveView) -> rich.console.RenderableType:
    """Return the view for a terminal: tables, the first causes and the latest events."""
    return rich.console.Group(*tables(view), *notes(view))


def tables(view: WorkerLiveView) -> Sequence[rich.console.RenderableType]:
    """Return the table of connectors and the table of topics; an empty one is left out."""
    return [
        *([_connector_table(view)] if view.connectors else []),
        *([_topic_table(view)] if view.topics else []),
    ]


def notes(view: WorkerLiveView) -> Sequence[rich.text.Text]:
    """Return the first causes of what does not run, records that failed, and the latest events."""
    causes = [rich.text.Text(line, style="yellow") for line in first_causes(view.problems)]
    skipped = [rich.text.Text(skipped_line(topic)) for topic in view.topics if topic.skipped]
    return [*causes, *skipped, *(rich.text.Text(event_line(event)) for event in view.events)]


def skipped_line(topic: TopicRow) -> str:
    """How many records of a topic failed in transforms, and how many of them are dead letters."""
    skipped = number_format.count_with_noun(topic.skipped, "record")
    letters = number_format.count_with_noun(topic.dead_letters, "dead letter")
    return f"{topic.topic}: {skipped} failed in transforms and not copied, {letters} written"


def event_line(event: EventSummary) -> str:
    """An event with its local time."""
    at = event.time.astimezone()
    return f"{at:%Y-%m-%d %H:%M:%S} {event.topic}-{event.partition}: {event.kind}: {event.text}"


def summary_line(view: WorkerLiveView) -> str:
    """Return the view as one line, for output that is not a terminal."""
    running = sum(connector.state == _RUNNING for connector in view.connectors)
    rate = sum(topic.records_per_s for topic in view.topics)
    parts = [
        (
            f"{running} of {number_format.count_with_noun(len(view.connectors), 'connector')}"
            f" running"
        ),
        f"{number_format.count_with_noun(view.records, 'record')} mirrored",
        number_format.per_second(rate),
        f"lag {number_format.count(view.lag)}",
    ]
    return "  ".join([*parts, *first_causes(view.problems)[:1]])


def _connector_table(view: WorkerLiveView) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    for heading in ("connector", "state", "tasks"):
        table.add_column(heading, no_wrap=True)
    has_lanes = any(connector.lane for connector in view.connectors)
    if has_lanes:
        table.add_column("records", overflow="fold")
    for connector in view.connectors:
        style = "green" if connector.state == _RUNNING else "yellow"
        tasks = ", ".join(
            f"{connector.tasks.count(state)} {state}" for state in dict.fromkeys(connector.tasks)
        )
        state = rich.text.Text(connector.state, style=style)
        lane = [rich.text.Text(connector.lane)] if has_lanes else []
        table.add_row(rich.text.Text(connector.name), state, tasks, *lane)
    return table


def _topic_table(view: WorkerLiveView) -> rich.table.Table:
    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("topic", overflow="fold")  # the only column that wraps in a narrow terminal
    table.add_column("", no_wrap=True)
    for heading in ("records", "records/s", "bytes/s", "lag", "ETA"):
        table.add_column(heading, justify="right", no_wrap=True)
    for topic in view.topics:
        table.add_row(
            rich.text.Text(f"{topic.topic} → {topic.remote_topic}"),
            progress_bar(topic.fraction, BAR_WIDTH),
            number_format.count(topic.records),
            number_format.per_second(topic.records_per_s),
            number_format.size_per_second(topic.bytes_per_s),
            number_format.count(topic.lag),
            topic.remaining_time,
        )
    return table
