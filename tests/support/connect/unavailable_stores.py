"""Herders on a config store that starts late, answers no write, or fails.

The stores are in memory. The name of their cluster is CLUSTER.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import RawConfig, ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.store.backing_stores import BackingStores
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.store.store_api import ConfigListener
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry
from tests.support.connect.in_memory_herder import WORKER_SETTINGS
from tests.support.connect.in_memory_stores import (
    MemoryLog,
    memory_offset_store,
    memory_status_store,
)

CLUSTER = "backup (b1:9092)"


class SlowConfigs(KafkaConfigBackingStore):
    """A config store whose start blocks, and may fail."""

    def __init__(self, failure: MirrorError | None = None) -> None:
        super().__init__(MemoryLog())
        self.may_start = threading.Event()
        self._failure = failure

    def start(self, listener: ConfigListener) -> None:
        self.may_start.wait(50)
        if self._failure is not None:
            raise self._failure
        super().start(listener)

    def stop(self) -> None:
        self.may_start.set()


class FrozenConfigs(KafkaConfigBackingStore):
    """A config store whose cluster answers no write until it is released."""

    def __init__(self) -> None:
        super().__init__(MemoryLog())
        self.release = threading.Event()
        self.is_writing = threading.Event()

    def put_target_state(self, name: str, state: TargetState) -> None:
        self.is_writing.set()
        self.release.wait(50)
        super().put_target_state(name, state)

    def stop(self) -> None:
        self.release.set()
        super().stop()


def herder_on(
    configs: KafkaConfigBackingStore,
    *,
    has_long_timeout: bool = True,
    health_timeout_s: float = 50,
    configured: Mapping[str, RawConfig] = MappingProxyType({}),
    get_unconfigured: Callable[[], str] = str,
    offsets: KafkaOffsetBackingStore | None = None,
) -> DistributedHerder:
    """A herder whose requests have a long timeout, or a very short one."""
    return DistributedHerder(
        replace(
            WORKER_SETTINGS,
            request_timeout_s=50 if has_long_timeout else 0.1,
            write_timeout_s=50 if has_long_timeout else 0.1,
            health_timeout_s=health_timeout_s,
        ),
        BackingStores(
            configs=configs,
            statuses=memory_status_store(),
            offsets=offsets or memory_offset_store(),
            cluster=CLUSTER,
        ),
        HerderDependencies(
            registry=fake_connector_registry(ConnectorProbe()),
            get_server_info=lambda: ServerInfo(version="4.3.0", commit="c", kafka_cluster_id=None),
            configured_connectors=configured,
            get_unconfigured=get_unconfigured,
        ),
    )


@contextmanager
def started(herder: DistributedHerder) -> Iterator[DistributedHerder]:
    """Start the herder, and shut it down in the end."""
    herder.start()
    try:
        yield herder
    finally:
        herder.shut_down()
