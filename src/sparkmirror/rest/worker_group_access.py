"""A group of workers as the REST server of one member uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.internal_requests.internal_herder import InternalHerder
from sparkmirror.connect.internal_requests.request_signature import InternalRequestSignature
from sparkmirror.connect.internal_requests.session_keys import (
    SIGNATURE_INVALID,
    SIGNATURE_MISSING,
)
from sparkmirror.errors import BadRequest, Forbidden, NotFound, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.client.member_reads import MemberAnswers, MemberReader, MemberReads


class WorkerGroupAccess:
    """One group: its herder in this process, and its other members."""

    def __init__(self, herder: InternalHerder, members: MemberReader) -> None:
        self.herder = herder
        self._reads = MemberReads(members)

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
        return self._reads.read(others, path)

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
