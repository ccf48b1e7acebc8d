"""One set of Connect topics, ours and a Java worker's in turn: each reads the other and goes on."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparkmirror.errors import LeadershipLost, TopicMissing
from sparkmirror.lab.jvm import Jvm
from sparkmirror.lab.yardstick import Setup, Yardstick
from sparkmirror.mirror.connect_configs import TargetState
from sparkmirror.mirror.connect_offsets import StoredOffset, source_partition
from sparkmirror.mirror.connect_statuses import State, Status, TopicStatus
from sparkmirror.mirror.tasks import source_task_configs
from sparkmirror.model import TopicPartition
from sparkmirror.store.stores import Stores, kafka_stores
from tests.support.clusters import Reachable, create_topic, read_values, write_values
from tests.support.connect_rest import get
from tests.support.waiting import wait_until

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
MIRROR = "org.apache.kafka.connect.mirror"
QUICKLY = Setup(jvm=Jvm(heap_mb=256, log_level="INFO"))
OURS = "ours:8083"
SLOWLY_S = 120.0
"""How long a Java worker may take on a busy computer."""
CONFLICT = http.HTTPStatus.CONFLICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Two clusters, a worker group on the target, and a topic with records 0 to 9."""

    source: Reachable
    target: Reachable
    group: str
    alias: str
    topic: str

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def worker(self) -> dict[str, str]:
        """The worker's config, which both sides get. Its leaders write configs in transactions."""
        topics = {"config": "configs", "offset": "offsets", "status": "status"}
        return {
            **self.target.properties,
            "group.id": self.group,
            "key.converter": BYTES,
            "value.converter": BYTES,
            **{f"{key}.storage.topic": f"{self.group}-{name}" for key, name in topics.items()},
            **{f"{key}.storage.replication.factor": "1" for key in topics},
            "config.storage.max.message.bytes": "2000000",
            "offset.flush.interval.ms": "1000",
            "exactly.once.source.support": "preparing",
            "plugin.discovery": "service_load",
        }

    def source_connector(self) -> dict[str, str]:
        return {
            "connector.class": f"{MIRROR}.MirrorSourceConnector",
            "name": "msc",
            "source.cluster.alias": self.alias,
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": self.source.bootstrap,
            "target.cluster.bootstrap.servers": self.target.bootstrap,
            "topics": self.topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "sync.topic.configs.enabled": "false",
            # Another test's heartbeats on the same cluster would be one more partition to plan.
            "heartbeats.replication.enabled": "false",
        }

    def heartbeat_connector(self) -> dict[str, str]:
        return {
            **self.source_connector(),
            "connector.class": f"{MIRROR}.MirrorHeartbeatConnector",
            "name": "hbc",
            "heartbeats.topic.replication.factor": "1",
        }

    def remote_values(self) -> list[bytes | None]:
        try:
            return read_values(self.target.access, f"{self.alias}.{self.topic}")
        except TopicMissing:
            return []


@contextmanager
def opened(scene: Scene) -> Iterator[Stores]:
    stores = kafka_stores(scene.worker(), scene.target.access)
    try:
        stores.offsets.start()
        stores.statuses.start()
        stores.configs.start(lambda change: None)
        yield stores
    finally:
        stores.configs.stop()
        stores.statuses.stop()
        stores.offsets.stop()


@pytest.fixture
def scene(primary: Reachable, backup: Reachable, topic: str) -> Scene:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, *(b"%d" % n for n in range(10)))
    name = secrets.token_hex(3)
    return Scene(
        source=primary, target=backup, group=f"group-{name}", alias=f"a-{name}", topic=topic
    )


def test_java_goes_on_where_we_stopped_and_we_where_java_did(scene: Scene) -> None:
    with opened(scene) as ours:
        write_as_a_worker(scene, ours)
        tasks = ours.configs.snapshot().tasks("msc")
        with Yardstick.connect_worker(scene.worker(), setup=QUICKLY) as java:
            check_what_java_reads(scene, java.url)
            # A Java that cannot reach the source in time first plans without its partitions.
            wait_until(
                lambda: ours.configs.snapshot().tasks("msc") == tasks,
                "Java to plan the same tasks",
                SLOWLY_S,
            )
            with pytest.raises(LeadershipLost):
                ours.configs.put_connector("late", {})
            ask_to(java.url, "/connectors/msc/stop")
            ask_to(java.url, "/connectors/hbc/pause")
            wait_until(
                lambda: state_of(java.url, "msc") == "STOPPED" and not task_states(java.url, "msc"),
                "Java's connector has stopped",
                SLOWLY_S,
            )
            check_what_we_follow(scene, ours)
            assert java.stop(120), "it did not stop by itself"
    with opened(scene) as again:
        check_what_we_follow(scene, again)
        again.configs.claim()
        again.configs.put_target_state("hbc", TargetState.STARTED)
        again.configs.remove_connector("msc")
        assert again.configs.snapshot().connectors() == ("hbc",)


def write_as_a_worker(scene: Scene, ours: Stores) -> None:
    """Remember what a worker of ours would have left: half of the topic was copied."""
    ours.configs.claim()
    config = scene.source_connector()
    ours.configs.put_connector("msc", config)
    task = {**config, "task.class": f"{MIRROR}.MirrorSourceTask"}
    ours.configs.put_tasks("msc", source_task_configs(task, [scene.partition], tasks_max=1))
    ours.configs.put_connector("hbc", scene.heartbeat_connector(), TargetState.STOPPED)
    ours.configs.put_tasks("hbc", [])
    where = source_partition(scene.alias, scene.partition)
    ours.offsets.save([StoredOffset(connector="msc", partition=where, offset={"offset": 4})])
    for task_number in (None, 0):
        ours.statuses.put(
            Status(
                connector="msc",
                task=task_number,
                state=State.RUNNING,
                worker_id=OURS,
                generation=1,
                version="4.3.0",
            )
        )
    ours.statuses.put_topic(
        TopicStatus(topic="seen-by-us", connector="msc", discovered_ms=1794779108397)
    )
    ours.statuses.put(
        Status(
            connector="forgotten",
            state=State.FAILED,
            worker_id=OURS,
            generation=1,
            trace="it broke\n",
        )
    )
    wait_until(lambda: ours.statuses.connector("forgotten") is not None, "statuses are written")


def check_what_java_reads(scene: Scene, url: str) -> None:
    wait_until(  # its REST API may answer before it has read everything
        lambda: set(get(url, "/connectors")) == {"msc", "hbc"},
        "Java knows our connectors",
        SLOWLY_S,
    )
    assert get(url, "/connectors/msc/config") == scene.source_connector()
    assert "seen-by-us" in get(url, "/connectors/msc/topics")["msc"]["topics"]
    wait_until(lambda: task_states(url, "msc") == ["RUNNING"], "Java runs our task", SLOWLY_S)
    wait_until(lambda: state_of(url, "hbc") == "STOPPED", "Java leaves the other one", SLOWLY_S)
    wait_until(
        lambda: scene.remote_values() == [b"5", b"6", b"7", b"8", b"9"],
        "Java copies the rest, and nothing twice",
        SLOWLY_S,
    )
    wait_until(lambda: stored_offset(url) == 9, "Java remembers how far it came", SLOWLY_S)


def check_what_we_follow(scene: Scene, ours: Stores) -> None:
    ours.configs.refresh()
    state = ours.configs.snapshot()
    assert set(state.connectors()) == {"msc", "hbc"}
    assert state.connector("msc") == scene.source_connector()
    assert state.target_state("msc") is TargetState.STOPPED
    assert state.target_state("hbc") is TargetState.PAUSED
    assert state.tasks("msc") == ()
    assert state.session_key is not None
    ours.statuses.refresh()
    connector = ours.statuses.connector("msc")
    assert connector is not None
    assert connector.worker_id != OURS
    assert connector.state in (State.STOPPED, State.UNASSIGNED)
    assert ours.statuses.tasks("msc") == ()
    assert {topic.topic for topic in ours.statuses.topics("msc")} == {
        "seen-by-us",
        f"{scene.alias}.{scene.topic}",
    }
    ours.offsets.refresh()
    (stored,) = ours.offsets.of_connector("msc")
    assert stored.offset == {"offset": 9}


def ask_to(url: str, path: str) -> None:
    """Have a worker do something, again if it says that its group rebalances just then."""

    def is_done() -> bool:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SLOWLY_S)
        try:
            connection.request("PUT", path)
            status = connection.getresponse().status
        finally:
            connection.close()
        assert status in (http.HTTPStatus.ACCEPTED, http.HTTPStatus.NO_CONTENT, CONFLICT), status
        return status != CONFLICT

    wait_until(is_done, f"PUT {path}", SLOWLY_S)


def statuses(url: str) -> dict[str, Any]:
    """Of every connector the status, if the worker knows one by now."""
    listed: dict[str, Any] = get(url, "/connectors?expand=status")
    return {name: shown["status"] for name, shown in listed.items() if "status" in shown}


def task_states(url: str, connector: str) -> list[str]:
    found = statuses(url).get(connector)
    return [task["state"] for task in found["tasks"]] if found else ["unknown"]


def state_of(url: str, connector: str) -> str:
    found = statuses(url).get(connector)
    return str(found["connector"]["state"]) if found else "unknown"


def stored_offset(url: str) -> int:
    found: list[Mapping[str, Mapping[str, int]]] = get(url, "/connectors/msc/offsets")["offsets"]
    return found[0]["offset"]["offset"]
