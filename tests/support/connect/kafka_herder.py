"""A herder with fake connectors on Connect's topics in Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.store.backing_stores import kafka_backing_stores
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry
from tests.support.connect.in_memory_herder import HerderHarness
from tests.support.kafka.clusters import SharedCluster


def worker_config(cluster: SharedCluster, name: str, **more: str) -> dict[str, str]:
    """The config of a worker whose group and topics have names with `name`; `_` means a dot."""
    topics = {f"{part}.storage.topic": f"{name}-{part}" for part in ("config", "offset", "status")}
    factors = {f"{part}.storage.replication.factor": "1" for part in ("config", "offset", "status")}
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    return {
        **cluster.properties,
        "group.id": name,
        "key.converter": converter,
        "value.converter": converter,
        "offset.storage.partitions": "2",
        "status.storage.partitions": "2",
        **topics,
        **factors,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@contextmanager
def running_kafka_herder(
    cluster: SharedCluster, config: Mapping[str, str], worker_id: str
) -> Iterator[HerderHarness]:
    """A started herder; it is shut down at the end."""
    probe, fenced = ConnectorProbe(), list[Sequence[str]]()
    herder = DistributedHerder(
        WorkerSettings.from_config(DISTRIBUTED.parse(config), worker_id, config),
        kafka_backing_stores(config, cluster.access),
        HerderDependencies(
            registry=fake_connector_registry(probe),
            get_server_info=lambda: ServerInfo(version="4.3.0", commit="c", kafka_cluster_id=None),
            fencer=fenced.append,
        ),
    )
    herder.start()
    try:
        assert herder.await_started(60)
        yield HerderHarness(herder, probe, fenced_ids=fenced)
    finally:
        herder.shut_down()
