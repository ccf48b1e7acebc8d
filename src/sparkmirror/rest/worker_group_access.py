"""A group of workers as the REST server of one member uses it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.internal_requests.internal_herder import InternalHerder
from sparkmirror.connect.internal_requests.request_signature import InternalRequestSignature
from sparkmirror.connect.internal_requests.session_keys import (
    SIGNATURE_INVALID,
    SIGNATURE_MISSING,
)
from sparkmirror.errors import BadRequest, Forbidden, MirrorError, NotFound, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.client.worker_requests import READ_TIMEOUT_S

_JOIN_TIMEOUT_S = 2 * READ_TIMEOUT_S + 1.0
"""For a second try with a newer session key."""


class MemberReader(Protocol):
    """Reads a path of another worker."""

    def read(self, url: str, path: str) -> JsonValue: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswers:
    """What the other members of the group answered, and why some did not."""

    answers: Mapping[str, JsonValue] = field(default_factory=dict, repr=False)
    """By worker id."""
    absent: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The reason, by worker id."""


@dataclass(frozen=True, slots=True)
class WorkerGroupAccess:
    """One group: its herder in this process, and its other members."""

    herder: InternalHerder
    members: MemberReader

    def read_others(self, path: str) -> MemberAnswers:
        """Ask all other members for a path of `internal_routes`, at the same time."""
        assignment = self.herder.assignment()
        if assignment is None:
            return MemberAnswers()
        others = [
            share
            for member_id, share in assignment.shares.items()
            if member_id != assignment.member_id
        ]
        return read_members(self.members, others, path)

    @property
    def own_worker_id(self) -> str:
        """The id of this worker; empty if it is no member."""
        assignment = self.herder.assignment()
        return "" if assignment is None else assignment.own_share.worker_id

    def owner_of_task(self, connector: str, task: int) -> str:
        """Return the worker that runs a task; empty if none is known."""
        assignment = self.herder.assignment()
        if assignment is None:
            return ""
        owner = assignment.owner_of_task(ConnectorTaskId(connector=connector, task=task))
        return "" if owner is None else owner.worker_id


def read_members(members: MemberReader, shares: list[MemberShare], path: str) -> MemberAnswers:
    """Ask these members for a path, each in a thread of its own."""
    answers: dict[str, JsonValue] = {}
    absent: dict[str, str] = {}

    def read(share: MemberShare) -> None:
        try:
            answers[share.worker_id] = members.read(share.url, path)
        except MirrorError as error:
            absent[share.worker_id] = str(error)

    threads = [
        threading.Thread(target=read, args=[share], name="rest-members", daemon=True)
        for share in shares
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_JOIN_TIMEOUT_S)
    late = {
        share.worker_id: f"the worker at {share.url} did not answer in time"
        for share in shares
        if share.worker_id not in answers and share.worker_id not in absent
    }
    return MemberAnswers(answers=dict(answers), absent={**absent, **late})


class _NoGroup:
    """A herder without other workers: no signature is valid."""

    def verify_internal_request(self, headers: Mapping[str, str], signed: bytes) -> None:
        del signed
        signature = InternalRequestSignature.from_headers(headers)
        raise BadRequest(SIGNATURE_MISSING) if signature is None else Forbidden(SIGNATURE_INVALID)

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        raise NotFound(f"Connector {name} not found")

    def fence_zombie_source_tasks(self, name: str) -> None:
        raise NotFound(f"Connector {name} not found")

    def assignment(self) -> Assignment | None:
        return None

    def read(self, url: str, path: str) -> JsonValue:
        raise RequestFailed(f"{url}{path} is not asked: this worker has no group")


NO_GROUP: Final = WorkerGroupAccess(_NoGroup(), _NoGroup())
