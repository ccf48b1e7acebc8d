"""Signed requests to other workers of the group: to the leader, and reads of every member.

In dedicated mode the paths of Connect's two requests begin with the flow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparkmirror.connect.internal_requests.session_keys import SessionKeys
from sparkmirror.errors import ConnectRestError, RequestFailed, WorkerStarting
from sparkmirror.mirror.connect_topics import connect_json
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.client.rest_client import RestClient, WorkerResponse
from sparkmirror.rest.http.path import quote_segment

LEADER_TIMEOUT_S: Final = 95.0
"""Longer than the leader's own timeout of 90 s, whose error says what it waited for."""
READ_TIMEOUT_S: Final = 2.0
_FORBIDDEN = 403
_OK = range(200, 300)
_JSON_HEADERS: Final = {"Content-Type": "application/json"}


class InterWorkerRequests:
    """Implements `LeaderRequests`. Any thread may call it."""

    def __init__(
        self, client: RestClient, session_keys: SessionKeys, flow: SourceAndTarget | None = None
    ) -> None:
        self._client = client
        self._session_keys = session_keys
        self._prefix = (
            "" if flow is None else f"/{quote_segment(flow.source)}/{quote_segment(flow.target)}"
        )

    def put_task_configs(
        self, leader_url: str, connector: str, configs: Sequence[ConfigProperties]
    ) -> None:
        """Give the leader the task configs of a connector that this worker owns."""
        body = connect_json.encode([dict(config) for config in configs])
        self._ask_leader("POST", f"{leader_url}{self._path(connector)}/tasks", body)

    def fence_zombies(self, leader_url: str, connector: str) -> None:
        """Let the leader fence the producers of a connector's older tasks."""
        self._ask_leader("PUT", f"{leader_url}{self._path(connector)}/fence", b"")

    def read(self, url: str, path: str) -> JsonValue:
        """Return the JSON that another worker answers for a path of `internal_routes`."""
        signed = f"GET {path}".encode()
        answer = self._send_signed(
            signed,
            lambda headers: self._client.send("GET", url + path, headers, timeout_s=READ_TIMEOUT_S),
        )
        _require_success(url + path, answer)
        try:
            found: JsonValue = json.loads(answer.content)
        except ValueError:
            raise RequestFailed(f"{url}{path} answered no JSON") from None
        return found

    def _path(self, connector: str) -> str:
        return f"{self._prefix}/connectors/{quote_segment(connector)}"

    def _ask_leader(self, method: str, url: str, body: bytes) -> None:
        answer = self._send_signed(
            body,
            lambda headers: self._client.send(
                method, url, {**_JSON_HEADERS, **headers}, body, timeout_s=LEADER_TIMEOUT_S
            ),
        )
        _require_success(url, answer)

    def _send_signed(
        self, signed: bytes, send: Callable[[Mapping[str, str]], WorkerResponse]
    ) -> WorkerResponse:
        """Send with the last known key. If the other worker knows a later one, read it first."""
        answer = send(self._sign(signed))
        if answer.status == _FORBIDDEN and self._session_keys.refresh():
            answer = send(self._sign(signed))
        return answer

    def _sign(self, signed: bytes) -> Mapping[str, str]:
        try:
            return self._session_keys.sign(signed)
        except WorkerStarting as error:
            raise RequestFailed(str(error)) from error


def _require_success(url: str, answer: WorkerResponse) -> None:
    if answer.status not in _OK:
        raise ConnectRestError(url, answer.status, answer.content.decode("utf-8", "replace"))
