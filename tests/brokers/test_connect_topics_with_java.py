"""A Java worker and this program use one set of Connect topics in turn and read each other."""

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
from sparkmirror.lab.kafka.java_reference import JavaReference, JavaReferenceOptions
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, source_partition
from sparkmirror.mirror.connect_topics.connect_statuses import (
    ConnectStatus,
    LifecycleState,
    TopicStatus,
)
from sparkmirror.mirror.topics.task_assignment import source_task_configs
from sparkmirror.model import TopicPartition
from sparkmirror.store.backing_stores import BackingStores, kafka_backing_stores
from tests.support.kafka.clusters import SharedCluster, create_topic, read_values, write_values
from tests.support.rest.json_requests import get_json
from tests.support.waiting import wait_until

BYTE_ARRAY_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
MIRROR = "org.apache.kafka.connect.mirror"
SMALL_JVM = JavaReferenceOptions(jvm=JvmOptions(heap_mb=256, log_level="INFO"))
OUR_WORKER_ID = "ours:8083"
JAVA_TIMEOUT_S = 120.0
"""How long a Java worker may take on a busy computer."""
CONFLICT = http.HTTPStatus.CONFLICT


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaInterop:
    """Two clusters, a worker group on the target, and a topic with records 0 to 9."""

    source: SharedCluster
    target: SharedCluster
    group: str
    alias: str
    topic: str

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def worker(self) -> dict[str, str]:
        """The worker config of both programs. Leaders write configs in transactions."""
        topics = {"config": "configs", "offset": "offsets", "status": "status"}
        return {
            **self.target.properties,
            "group.id": self.group,
            "key.converter": BYTE_ARRAY_CONVERTER,
            "value.converter": BYTE_ARRAY_CONVERTER,
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
            # Heartbeats of another test on this cluster would add a partition to the tasks.
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
def started_stores(interop: JavaInterop) -> Iterator[BackingStores]:
    stores = kafka_backing_stores(interop.worker(), interop.target.access)
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
def interop(primary: SharedCluster, backup: SharedCluster, topic: str) -> JavaInterop:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, *(b"%d" % n for n in range(10)))
    name = secrets.token_hex(3)
    return JavaInterop(
        source=primary, target=backup, group=f"group-{name}", alias=f"a-{name}", topic=topic
    )


def test_java_continues_where_this_program_stopped_and_vice_versa(interop: JavaInterop) -> None:
    with started_stores(interop) as ours:
        write_as_a_worker(interop, ours)
        tasks = ours.configs.snapshot().task_configs("msc")
        with JavaReference.start_connect_worker(interop.worker(), setup=SMALL_JVM) as java:
            check_what_java_reads(interop, java.rest_url)
            # A Java worker that cannot reach the source in time first plans no partitions.
            wait_until(
                lambda: ours.configs.snapshot().task_configs("msc") == tasks,
                "Java to plan the same tasks",
                JAVA_TIMEOUT_S,
            )
            with pytest.raises(LeadershipLost):
                ours.configs.put_connector_config("late", {})
            put_until_accepted(java.rest_url, "/connectors/msc/stop")
            put_until_accepted(java.rest_url, "/connectors/hbc/pause")
            wait_until(
                lambda: (
                    state_of(java.rest_url, "msc") == "STOPPED"
                    and not task_states(java.rest_url, "msc")
                ),
                "Java's connector has stopped",
                JAVA_TIMEOUT_S,
            )
            check_what_the_stores_read(interop, ours)
            assert java.stop(120), "the Java worker did not stop"
    with started_stores(interop) as again:
        check_what_the_stores_read(interop, again)
        again.configs.claim_write_privileges()
        again.configs.put_target_state("hbc", TargetState.STARTED)
        again.configs.remove_connector_config("msc")
        assert again.configs.snapshot().connectors() == ("hbc",)


def write_as_a_worker(interop: JavaInterop, ours: BackingStores) -> None:
    """Write the records of a worker that has copied half of the topic."""
    ours.configs.claim_write_privileges()
    config = interop.source_connector()
    ours.configs.put_connector_config("msc", config)
    task = {**config, "task.class": f"{MIRROR}.MirrorSourceTask"}
    ours.configs.put_task_configs(
        "msc", source_task_configs(task, [interop.partition], tasks_max=1)
    )
    ours.configs.put_connector_config("hbc", interop.heartbeat_connector(), TargetState.STOPPED)
    ours.configs.put_task_configs("hbc", [])
    where = source_partition(interop.alias, interop.partition)
    ours.offsets.save([StoredOffset(connector="msc", partition=where, offset={"offset": 4})])
    for task_number in (None, 0):
        ours.statuses.put(
            ConnectStatus(
                connector="msc",
                task=task_number,
                state=LifecycleState.RUNNING,
                worker_id=OUR_WORKER_ID,
                generation=1,
                version="4.3.0",
            )
        )
    ours.statuses.put_topic(
        TopicStatus(topic="seen-by-us", connector="msc", discovered_ms=1794779108397)
    )
    ours.statuses.put(
        ConnectStatus(
            connector="forgotten",
            state=LifecycleState.FAILED,
            worker_id=OUR_WORKER_ID,
            generation=1,
            trace="it broke\n",
        )
    )
    wait_until(
        lambda: ours.statuses.connector_status("forgotten") is not None, "statuses are written"
    )


def check_what_java_reads(interop: JavaInterop, url: str) -> None:
    wait_until(  # its REST API may answer before it has read everything
        lambda: set(get_json(url, "/connectors")) == {"msc", "hbc"},
        "Java knows our connectors",
        JAVA_TIMEOUT_S,
    )
    assert get_json(url, "/connectors/msc/config") == interop.source_connector()
    assert "seen-by-us" in get_json(url, "/connectors/msc/topics")["msc"]["topics"]
    wait_until(lambda: task_states(url, "msc") == ["RUNNING"], "Java runs our task", JAVA_TIMEOUT_S)
    wait_until(
        lambda: state_of(url, "hbc") == "STOPPED",
        "Java does not start the stopped connector",
        JAVA_TIMEOUT_S,
    )
    wait_until(
        lambda: interop.remote_values() == [b"5", b"6", b"7", b"8", b"9"],
        "Java copies the rest, and no record twice",
        JAVA_TIMEOUT_S,
    )
    wait_until(lambda: stored_offset(url) == 9, "Java commits its source offset", JAVA_TIMEOUT_S)


def check_what_the_stores_read(interop: JavaInterop, ours: BackingStores) -> None:
    ours.configs.refresh()
    state = ours.configs.snapshot()
    assert set(state.connectors()) == {"msc", "hbc"}
    assert state.connector_config("msc") == interop.source_connector()
    assert state.target_state("msc") is TargetState.STOPPED
    assert state.target_state("hbc") is TargetState.PAUSED
    assert state.task_configs("msc") == ()
    assert state.session_key is not None
    ours.statuses.refresh()
    connector = ours.statuses.connector_status("msc")
    assert connector is not None
    assert connector.worker_id != OUR_WORKER_ID
    assert connector.state in (LifecycleState.STOPPED, LifecycleState.UNASSIGNED)
    assert ours.statuses.task_statuses("msc") == ()
    assert {topic.topic for topic in ours.statuses.topic_statuses("msc")} == {
        "seen-by-us",
        f"{interop.alias}.{interop.topic}",
    }
    ours.offsets.refresh()
    (stored,) = ours.offsets.connector_offsets("msc")
    assert stored.offset == {"offset": 9}


def put_until_accepted(url: str, path: str) -> None:
    """Send a PUT, again while the worker answers that its group rebalances."""

    def is_done() -> bool:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=JAVA_TIMEOUT_S)
        try:
            connection.request("PUT", path)
            status = connection.getresponse().status
        finally:
            connection.close()
        assert status in (http.HTTPStatus.ACCEPTED, http.HTTPStatus.NO_CONTENT, CONFLICT), status
        return status != CONFLICT

    wait_until(is_done, f"PUT {path}", JAVA_TIMEOUT_S)


def statuses(url: str) -> dict[str, Any]:
    """The status of every connector that has one."""
    listed: dict[str, Any] = get_json(url, "/connectors?expand=status")
    return {name: expanded["status"] for name, expanded in listed.items() if "status" in expanded}


def task_states(url: str, connector: str) -> list[str]:
    found = statuses(url).get(connector)
    return [task["state"] for task in found["tasks"]] if found else ["unknown"]


def state_of(url: str, connector: str) -> str:
    found = statuses(url).get(connector)
    return str(found["connector"]["state"]) if found else "unknown"


def stored_offset(url: str) -> int:
    found: list[Mapping[str, Mapping[str, int]]] = get_json(url, "/connectors/msc/offsets")[
        "offsets"
    ]
    return found[0]["offset"]["offset"]
