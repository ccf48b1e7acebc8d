"""The herder on Connect's own topics: what one worker leaves, the next one goes on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.herding import Offsets, WorkerInfo
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.worker_life import Surroundings
from sparkmirror.store.stores import kafka_stores
from tests.support.clusters import Reachable, UniqueName
from tests.support.herders import SOURCE, Stage, eventually, named
from tests.support.small_connectors import Watch, small_kinds

RUNNING = ("RUNNING", "RUNNING", "RUNNING")


def worker_config(cluster: Reachable, name: str, **more: str) -> dict[str, str]:
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
def worker(cluster: Reachable, config: Mapping[str, str], worker_id: str) -> Iterator[Stage]:
    watch, fenced = Watch(), list[Sequence[str]]()
    herder = Herder(
        WorkerSettings.of(DISTRIBUTED.parse(config), worker_id, config),
        kafka_stores(config, cluster.access),
        Surroundings(
            kinds=small_kinds(watch),
            about=lambda: WorkerInfo(version="4.3.0", commit="c", kafka_cluster_id=None),
            fence=fenced.append,
        ),
    )
    herder.start()
    try:
        assert herder.wait_started(60)
        yield Stage(herder, watch, fenced=fenced)
    finally:
        herder.shut_down()


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_a_worker_goes_on_where_the_last_one_ended(
    backup: Reachable, unique_name: UniqueName, support: str
) -> None:
    name = unique_name("herder")
    config = worker_config(backup, name, exactly_once_source_support=support)
    place = {"cluster": "source", "partition": 0, "topic": "orders"}
    with worker(backup, config, "first:8083") as stage:
        stage.herder.create("c", named("c", SOURCE), None)
        stage.herder.create("d", named("d", SOURCE), None)
        assert set(stage.herder.connectors()) == {"c", "d"}  # what was written has been read back
        stage.reaches("c", *RUNNING)
        stage.reaches("d", *RUNNING)
        eventually(lambda: set(stage.herder.active_topics("c")) == {"orders", "payments"}, "used")
        stage.herder.pause("d")
        stage.reaches("d", "PAUSED", "PAUSED", "PAUSED")
        stage.herder.stop("c")
        stage.herder.alter_offsets("c", [Offsets(partition=place, offset={"offset": 3})])
        assert stage.herder.offsets("c") == [Offsets(partition=place, offset={"offset": 3})]
    with worker(backup, config, "second:8083") as stage:
        stage.reaches("c", "STOPPED")
        stage.reaches("d", "PAUSED", "PAUSED", "PAUSED")
        assert stage.herder.status("d").connector.worker_id == "second:8083"
        assert stage.herder.offsets("c") == [Offsets(partition=place, offset={"offset": 3})]
        stage.herder.resume("c")
        stage.reaches("c", *RUNNING)
        stage.herder.restart_with("c", include_tasks=True, only_failed=False)
        eventually(lambda: "restart tasks c [0, 1]" in stage.watch.calls, "restarted")
        stage.reaches("c", *RUNNING)
        stage.herder.delete("d")
        stage.reaches("d")
        stage.herder.reset_active_topics("c")
        eventually(lambda: stage.herder.active_topics("c") == [], "forgotten")
    with worker(backup, config, "third:8083") as stage:
        assert list(stage.herder.connectors()) == ["c"]
        stage.reaches("c", *RUNNING)
        assert stage.states("d") == []
