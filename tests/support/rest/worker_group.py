"""Workers of one group as their REST servers see it: scripted herders that share a session key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.internal_requests.inter_worker_settings import InterWorkerSettings
from sparkmirror.connect.internal_requests.session_keys import SessionKeys
from sparkmirror.errors import NotFound
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, SessionKey
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store


def session_keys(key: SessionKey | None = None) -> SessionKeys:
    """The keys of a worker that has read this key, or of a leader that has written one."""
    store = memory_config_store(MemoryLog([] if key is None else [key.encode()]))
    store.start(lambda _: None)
    keys = SessionKeys(store, InterWorkerSettings())
    if key is None:
        keys.replace_expired_key()
    return keys


def two_worker_assignment(
    own: str, urls: Mapping[str, str], tasks: Mapping[str, Sequence[ConnectorTaskId]] | None = None
) -> Assignment:
    """The assignment that the worker `own` has; `urls` are those of all workers, leader first."""
    shares = {
        worker: MemberShare(
            worker_id=worker, url=url, tasks=frozenset((tasks or {}).get(worker, ()))
        )
        for worker, url in urls.items()
    }
    return Assignment(
        generation=1,
        member_id=own,
        leader_id=next(iter(urls)),
        config_offset=0,
        shares=shares,
    )


@dataclass
class ScriptedInternalHerder:
    """An `InternalHerder` that verifies signatures and records what it was asked for."""

    keys: SessionKeys
    connectors: frozenset[str] = frozenset()
    current: Assignment | None = None
    written: list[tuple[str, Sequence[ConfigProperties]]] = field(default_factory=list)
    fenced: list[str] = field(default_factory=list)

    def verify_internal_request(self, headers: Mapping[str, str], signed: bytes) -> None:
        self.keys.verify(headers, signed)

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        self._require(name)
        self.written.append((name, configs))

    def fence_zombie_source_tasks(self, name: str) -> None:
        self._require(name)
        self.fenced.append(name)

    def assignment(self) -> Assignment | None:
        return self.current

    def _require(self, name: str) -> None:
        if name not in self.connectors:
            raise NotFound(f"Connector {name} not found")
