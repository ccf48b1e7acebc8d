"""The herder on Connect's internal topics: a worker continues where the last one stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ConnectorOffset, ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.store.backing_stores import kafka_backing_stores
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry
from tests.support.connect.in_memory_herder import (
    SOURCE_CONFIG,
    HerderHarness,
    named_config,
    poll_until,
)
from tests.support.kafka.clusters import SharedCluster, UniqueName

RUNNING = ("RUNNING", "RUNNING", "RUNNING")


def worker_config(cluster: SharedCluster, name: str, **more: str) -> dict[str, str]:
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
def worker(
    cluster: SharedCluster, config: Mapping[str, str], worker_id: str
) -> Iterator[HerderHarness]:
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


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_a_worker_continues_where_the_last_one_stopped(
    backup: SharedCluster, unique_name: UniqueName, support: str
) -> None:
    name = unique_name("herder")
    config = worker_config(backup, name, exactly_once_source_support=support)
    partition = {"cluster": "source", "partition": 0, "topic": "orders"}
    with worker(backup, config, "first:8083") as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.herder.create_connector("d", named_config("d", SOURCE_CONFIG), None)
        # the herder has read its own records back
        assert set(harness.herder.connectors()) == {"c", "d"}
        harness.wait_for_states("c", *RUNNING)
        harness.wait_for_states("d", *RUNNING)
        poll_until(lambda: set(harness.herder.active_topics("c")) == {"orders", "payments"}, "used")
        harness.herder.pause_connector("d")
        harness.wait_for_states("d", "PAUSED", "PAUSED", "PAUSED")
        harness.herder.stop_connector("c")
        harness.herder.alter_connector_offsets(
            "c", [ConnectorOffset(partition=partition, offset={"offset": 3})]
        )
        assert harness.herder.connector_offsets("c") == [
            ConnectorOffset(partition=partition, offset={"offset": 3})
        ]
    with worker(backup, config, "second:8083") as harness:
        harness.wait_for_states("c", "STOPPED")
        harness.wait_for_states("d", "PAUSED", "PAUSED", "PAUSED")
        assert harness.herder.connector_status("d").connector.worker_id == "second:8083"
        assert harness.herder.connector_offsets("c") == [
            ConnectorOffset(partition=partition, offset={"offset": 3})
        ]
        harness.herder.resume_connector("c")
        harness.wait_for_states("c", *RUNNING)
        harness.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=False)
        poll_until(lambda: "restart tasks c [0, 1]" in harness.probe.calls, "restarted")
        harness.wait_for_states("c", *RUNNING)
        harness.herder.delete_connector("d")
        harness.wait_for_states("d")
        harness.herder.reset_active_topics("c")
        poll_until(lambda: harness.herder.active_topics("c") == [], "forgotten")
    with worker(backup, config, "third:8083") as harness:
        assert list(harness.herder.connectors()) == ["c"]
        harness.wait_for_states("c", *RUNNING)
        assert harness.states("d") == []
