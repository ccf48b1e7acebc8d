"""Herders on stores in memory, with fake connectors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sparkmirror.config.definition.connector_config_validation import WorkerCapabilities
from sparkmirror.config.secrets.variables import ConfigProvider
from sparkmirror.connect.distributed.sole_member import SoleMember
from sparkmirror.connect.distributed.worker_group_member import WorkerGroupMember
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry
from sparkmirror.connect.runtime.run_context import WorkerValuesReader
from sparkmirror.errors import NotFound
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.backing_stores import BackingStores
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry
from tests.support.connect.in_memory_stores import (
    MemoryLog,
    memory_config_store,
    memory_offset_store,
    memory_status_store,
)

WORKER_ID = "127.0.0.1:31083"
WORKER_SETTINGS = WorkerSettings(
    worker_id=WORKER_ID, group_id="connect-cluster", stop_timeout_s=5.0, request_timeout_s=20.0
)
HEARTBEAT_CONFIG = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "source.cluster.alias": "source",
    "target.cluster.alias": "target",
    "target.cluster.bootstrap.servers": "127.0.0.1:9",
}
SOURCE_CONFIG = {
    **HEARTBEAT_CONFIG,
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "topics": "orders,payments",
    "tasks.max": "2",
}


@dataclass
class HerderHarness:
    """A herder, and everything around it that a test checks."""

    herder: DistributedHerder
    probe: ConnectorProbe
    config_log: MemoryLog = field(default_factory=MemoryLog)
    status_log: MemoryLog = field(default_factory=MemoryLog)
    fenced_ids: list[Sequence[str]] = field(default_factory=list)
    ended_tasks: list[tuple[str, TargetState | None]] = field(default_factory=list)

    def states(self, name: str) -> list[str]:
        """The states of the connector and its tasks; empty if there is no status."""
        try:
            status = self.herder.connector_status(name)
        except NotFound:
            return []
        return [status.connector.state, *(task.state for task in status.tasks.values())]

    def wait_for_states(self, name: str, *states: str) -> None:
        """Wait until the connector and its tasks are in these states."""
        poll_until(lambda: self.states(name) == list(states), f"{name}: {states}")


def poll_until(condition: Callable[[], bool], description: str, timeout_s: float = 50.0) -> None:
    """Wait until a condition is true. Checks often: all tests of this tier wait like this."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"timed out: {description}"
        time.sleep(0.002)


@contextmanager
def running_herder(
    settings: WorkerSettings = WORKER_SETTINGS,
    *,
    configs: Sequence[RecordBytes] = (),
    statuses: Sequence[RecordBytes] = (),
    offsets: Sequence[StoredOffset] = (),
    providers: Mapping[str, ConfigProvider] | None = None,
    log_levels: LogLevels | None = None,
    probe: ConnectorProbe | None = None,
    registry: ConnectorRegistry | None = None,
    config_log: MemoryLog | None = None,
    read_worker_values: WorkerValuesReader | None = None,
    member: WorkerGroupMember | None = None,
) -> Iterator[HerderHarness]:
    """A started herder; it is shut down at the end. Without a registry, connectors are fake."""
    probe = probe or ConnectorProbe()
    config_log, status_log = config_log or MemoryLog(configs), MemoryLog(statuses)
    fenced: list[Sequence[str]] = []
    ended: list[tuple[str, TargetState | None]] = []
    stores = BackingStores(
        configs=memory_config_store(config_log),
        statuses=memory_status_store(status_log),
        offsets=memory_offset_store(MemoryLog(offset.encode() for offset in offsets)),
    )
    dependencies = HerderDependencies(
        registry=registry or fake_connector_registry(probe),
        get_server_info=lambda: ServerInfo(
            version="4.3.0", commit="a9ce3221537b8653", kafka_cluster_id="x"
        ),
        providers=providers or {},
        fencer=fenced.append,
        log_levels=log_levels or LogLevels(_private_loggers()),
        on_tasks_ended=lambda name, state: ended.append((name, state)),
        read_worker_values=read_worker_values,
        member=member or SoleMember(),
    )
    herder = DistributedHerder(settings, stores, dependencies)
    herder.start()
    try:
        assert herder.await_started(50)
        yield HerderHarness(herder, probe, config_log, status_log, fenced, ended)
    finally:
        probe.release_hanging.set()
        herder.shut_down()


def _private_loggers() -> logging.Manager:
    """Loggers whose levels a request may set without an effect on other tests."""
    return logging.Manager(logging.RootLogger(logging.WARNING))


def named_config(name: str, config: Mapping[str, str], **more: str) -> dict[str, str | None]:
    """A config with its name, as REST passes it; `__` stands for a dot."""
    extra = {key.replace("__", "."): value for key, value in more.items()}
    return {**config, **extra, "name": name}


def exactly_once_settings() -> WorkerSettings:
    """Settings of a worker with exactly-once support."""
    return WorkerSettings(
        worker_id=WORKER_ID,
        group_id="connect-cluster",
        stop_timeout_s=5.0,
        request_timeout_s=20.0,
        capabilities=WorkerCapabilities(exactly_once=True),
    )
