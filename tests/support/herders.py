"""Herders on stores in memory, with small connectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sparkmirror.config.validation import WorkerTerms
from sparkmirror.config.variables import Provider
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.herding import WorkerInfo
from sparkmirror.connect.log_levels import LogLevels
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.worker_life import Surroundings
from sparkmirror.errors import NotFound
from sparkmirror.mirror.connect_offsets import StoredOffset
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.store.memory import MemoryLog, memory_configs, memory_offsets, memory_statuses
from sparkmirror.store.stores import Stores
from tests.support.small_connectors import Watch, small_kinds

WORKER_ID = "127.0.0.1:31083"
SETTINGS = WorkerSettings(
    worker_id=WORKER_ID, group_id="connect-cluster", stop_within_s=5.0, request_timeout_s=20.0
)
HEARTBEAT = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "source.cluster.alias": "source",
    "target.cluster.alias": "target",
    "target.cluster.bootstrap.servers": "127.0.0.1:9",
}
SOURCE = {
    **HEARTBEAT,
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "topics": "orders,payments",
    "tasks.max": "2",
}


@dataclass
class Stage:
    """A herder, and everything around it that a test looks at."""

    herder: Herder
    watch: Watch
    configs: MemoryLog = field(default_factory=MemoryLog)
    statuses: MemoryLog = field(default_factory=MemoryLog)
    fenced: list[Sequence[str]] = field(default_factory=list)

    def states(self, name: str) -> list[str]:
        """The connector's state and those of its tasks; nothing if there is no status."""
        try:
            status = self.herder.status(name)
        except NotFound:
            return []
        return [status.connector.state, *(task.state for task in status.tasks.values())]

    def reaches(self, name: str, *states: str) -> None:
        """Wait until the connector and its tasks are in these states."""
        eventually(lambda: self.states(name) == list(states), f"{name}: {states}")


def eventually(condition: Callable[[], bool], what: str, within_s: float = 50.0) -> None:
    """Wait until something holds; looks often, because a whole tier of tests waits like this."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.002)


@contextmanager
def herding(
    settings: WorkerSettings = SETTINGS,
    *,
    configs: Sequence[RecordBytes] = (),
    statuses: Sequence[RecordBytes] = (),
    offsets: Sequence[StoredOffset] = (),
    providers: Mapping[str, Provider] | None = None,
    log_levels: LogLevels | None = None,
    watch: Watch | None = None,
) -> Iterator[Stage]:
    """A herder that has started; it is shut down in the end."""
    watch = watch or Watch()
    config_log, status_log, fenced = MemoryLog(configs), MemoryLog(statuses), list[Sequence[str]]()
    stores = Stores(
        configs=memory_configs(config_log),
        statuses=memory_statuses(status_log),
        offsets=memory_offsets(MemoryLog(offset.encode() for offset in offsets)),
    )
    surroundings = Surroundings(
        kinds=small_kinds(watch),
        about=lambda: WorkerInfo(version="4.3.0", commit="a9ce3221537b8653", kafka_cluster_id="x"),
        providers=providers or {},
        fence=fenced.append,
        log_levels=log_levels or LogLevels(),
    )
    herder = Herder(settings, stores, surroundings)
    herder.start()
    try:
        assert herder.wait_started(50)
        yield Stage(herder, watch, config_log, status_log, fenced)
    finally:
        watch.release.set()
        herder.shut_down()


def named(name: str, config: Mapping[str, str], **more: str) -> dict[str, str | None]:
    """A config with its name, as REST hands it over; `__` stands for a dot."""
    extra = {key.replace("__", "."): value for key, value in more.items()}
    return {**config, **extra, "name": name}


def exactly_once() -> WorkerSettings:
    """Settings of a worker with exactly-once support."""
    return WorkerSettings(
        worker_id=WORKER_ID,
        group_id="connect-cluster",
        stop_within_s=5.0,
        request_timeout_s=20.0,
        terms=WorkerTerms(exactly_once=True),
    )
