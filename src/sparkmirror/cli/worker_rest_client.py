"""A client of a worker's REST API: states, partitions, groups."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkmirror.errors import RequestFailed

DEFAULT_URL = "http://127.0.0.1:8083"
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSummary:
    """A connector, its tasks, and what is wrong with any of them."""

    name: str
    state: str
    tasks: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """One source partition, as the worker reports it."""

    topic: str
    partition: int
    remote_topic: str
    position: int
    end: int
    lag: int
    records: int
    bytes: int
    reason: str


class WorkerRestClient:
    """Sends requests to one worker. Raises RequestFailed if it does not answer or rejects one."""

    def __init__(self, url: str = DEFAULT_URL) -> None:
        self._url = url.rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            self._url = f"http://{self._url}"

    def connectors(self) -> tuple[ConnectorSummary, ...]:
        """Every connector with its state."""
        found = self._get("/connectors?expand=status")
        return tuple(
            _connector_summary(name, found[name]["status"]) for name in sorted(found, key=_sort_key)
        )

    def partitions(self, connector: str) -> tuple[PartitionSummary, ...]:
        """The progress of a source connector."""
        found = self._get(f"/connectors/{_quoted(connector)}/partitions")["partitions"]
        names = PartitionSummary.__dataclass_fields__
        return tuple(PartitionSummary(**{name: item[name] for name in names}) for item in found)

    def groups(self, connector: str) -> Sequence[Mapping[str, Any]]:
        """The state of each group's offsets."""
        found: Sequence[Mapping[str, Any]] = self._get(f"/connectors/{_quoted(connector)}/groups")[
            "groups"
        ]
        return found

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(  # noqa: S310  http or https, see above
            self._url + path, headers={"Accept": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            body = error.read().decode("utf-8", "replace")
            raise RequestFailed(f"{self._url}{path} answered {error.code}: {body}") from error
        except (OSError, ValueError) as error:
            raise RequestFailed(
                f"no worker answers at {self._url}: {error}; start one, or name it with --url"
            ) from error


def _connector_summary(name: str, status: Mapping[str, Any]) -> ConnectorSummary:
    parts = [status["connector"], *status["tasks"]]
    errors = dict.fromkeys(_first_line(part["trace"]) for part in parts if part.get("trace"))
    return ConnectorSummary(
        name=name,
        state=status["connector"]["state"],
        tasks=tuple(task["state"] for task in status["tasks"]),
        errors=tuple(errors),
    )


def _first_line(trace: str) -> str:
    return trace.strip().splitlines()[0] if trace.strip() else ""


def _sort_key(name: str) -> tuple[str, str]:
    """Flows together; within one by name."""
    flow, _, own = name.rpartition(".")
    return flow, own


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
