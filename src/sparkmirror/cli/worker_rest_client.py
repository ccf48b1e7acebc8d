"""A client of a worker's REST API: health, states, partitions, events, groups."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sparkmirror.errors import ConnectRestError, RequestFailed
from sparkmirror.rest.client.rest_client import RestClient, WorkerUnreachable
from sparkmirror.transforms.lane_choice import connector_lane

DEFAULT_URL = "http://127.0.0.1:8083"
UNASSIGNED = "UNASSIGNED"
"""The state of a connector that has no status yet."""
_TIMEOUT_S = 10.0
_ACCEPT = {"Accept": "application/json"}
_OK = range(200, 300)
_WITHOUT_PARTITIONS = ("MirrorCheckpointConnector", "MirrorHeartbeatConnector")
NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSummary:
    """The answer of `/health`: healthy, degraded, starting or unhealthy, and why."""

    status: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSummary:
    """A connector, its tasks, and what is wrong with any of them."""

    name: str
    state: str
    tasks: tuple[str, ...]
    errors: tuple[str, ...]
    has_partitions: bool = True
    """Whether it can have partitions and events: source connectors do."""
    lane: str = ""
    """How far its transformations open records, and why; empty without transformations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """One source partition, as the worker reports it."""

    topic: str
    partition: int
    remote_topic: str
    state: str
    position: int | None
    end: int | None
    lag: int | None
    records: int
    bytes: int
    reason: str
    skipped: int = 0
    """Records that failed in transforms and are not copied."""
    dead_letters: int = 0
    """Those of them that the topic for dead letters has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSummary:
    """The partitions of a source connector, from all workers of the group that answered."""

    partitions: tuple[PartitionSummary, ...]
    unreachable_workers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Why a worker of the group did not answer the asked one, by worker id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSummary:
    """An event of a source partition, as the worker reports it."""

    time: datetime
    kind: str
    topic: str
    partition: int
    text: str


class WorkerRestClient:
    """Sends requests to one worker. Raises RequestFailed if it does not answer or refuses one."""

    def __init__(self, url: str = DEFAULT_URL) -> None:
        self._url = url.rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            self._url = f"http://{self._url}"
        self._client = RestClient()

    def connectors(self) -> tuple[ConnectorSummary, ...]:
        """Every connector with its state. One that has no status yet is UNASSIGNED."""
        names = self._get("/connectors")
        found = self._get("/connectors?expand=info&expand=status")
        return tuple(
            _connector_summary(name, found.get(name)) for name in sorted(names, key=_sort_key)
        )

    def health(self) -> HealthSummary:
        """The health of the worker. A starting or unhealthy worker answers with an HTTP error."""
        try:
            found = self._get("/health")
        except ConnectRestError as error:
            if error.status == NOT_FOUND:  # workers before Kafka 3.9
                return HealthSummary(status="healthy", message="")
            found = _json_object(error.body)
        return HealthSummary(
            status=found.get("status", "unhealthy"), message=found.get("message", "")
        )

    def progress(self, connector: str) -> ProgressSummary:
        """The progress of a source connector."""
        found = self._get(f"/connectors/{_quoted(connector)}/partitions")
        names = PartitionSummary.__dataclass_fields__
        return ProgressSummary(
            partitions=tuple(
                PartitionSummary(**{name: item[name] for name in names if name in item})
                for item in found["partitions"]
            ),
            unreachable_workers=found.get("unreachable_workers", {}),
        )

    def events(self, connector: str) -> tuple[EventSummary, ...]:
        """The latest events of a source connector, oldest first."""
        found = self._get(f"/connectors/{_quoted(connector)}/events")["events"]
        return tuple(
            EventSummary(
                time=datetime.fromisoformat(item["time"]),
                kind=item["kind"],
                topic=item["topic"],
                partition=item["partition"],
                text=item["text"],
            )
            for item in found
        )

    def groups(self, connector: str) -> Sequence[Mapping[str, Any]]:
        """The state of each group's offsets."""
        found: Sequence[Mapping[str, Any]] = self._get(f"/connectors/{_quoted(connector)}/groups")[
            "groups"
        ]
        return found

    def group_exclusion(self, connector: str, group: str) -> str:
        """Why a connector does not follow a group; empty if it does or that is not known."""
        path = f"/connectors/{_quoted(connector)}/groups?group={_quoted(group)}"
        return str(self._get(path).get("reason", ""))

    def _get(self, path: str) -> Any:
        url = self._url + path
        try:
            answer = self._client.send("GET", url, _ACCEPT, timeout_s=_TIMEOUT_S)
            if answer.status not in _OK:
                raise ConnectRestError(url, answer.status, answer.content.decode(errors="replace"))
            return json.loads(answer.content)
        except ConnectRestError:
            raise
        except (WorkerUnreachable, ValueError) as error:
            cause = error.__cause__ or error
            raise RequestFailed(
                f"no worker answers at {self._url}: {cause}; start one, or name it with --url"
            ) from error
        except RequestFailed as error:
            raise RequestFailed(f"{error}; look at {self._url}/health and at its log") from error


def _connector_summary(name: str, expanded: Mapping[str, Any] | None) -> ConnectorSummary:
    if expanded is None:
        return ConnectorSummary(name=name, state=UNASSIGNED, tasks=(), errors=())
    status = expanded["status"]
    config = expanded["info"]["config"]
    has_partitions = not (config.get("connector.class") or "").endswith(_WITHOUT_PARTITIONS)
    parts = [status["connector"], *status["tasks"]]
    errors = dict.fromkeys(_first_line(part["trace"]) for part in parts if part.get("trace"))
    return ConnectorSummary(
        name=name,
        state=status["connector"]["state"],
        tasks=tuple(task["state"] for task in status["tasks"]),
        errors=tuple(errors),
        has_partitions=has_partitions,
        lane=_lane(config) if has_partitions else "",
    )


def _lane(config: Mapping[str, str]) -> str:
    choice = connector_lane(config) if config.get("transforms") else None
    return "" if choice is None else str(choice)


def _json_object(body: str) -> Mapping[str, Any]:
    """Return the JSON object; a body of another kind is the message."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": body}


def _first_line(trace: str) -> str:
    return trace.strip().splitlines()[0] if trace.strip() else ""


def _sort_key(name: str) -> tuple[str, str]:
    """Flows together; within one by name."""
    flow, _, own = name.rpartition(".")
    return flow, own


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
