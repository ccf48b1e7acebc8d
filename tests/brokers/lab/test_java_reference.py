"""Java MirrorMaker and a Java Connect worker start, answer, stop and are killed."""

from __future__ import annotations

import http.client
import json
import secrets
from urllib.parse import urlsplit

import pytest

from sparkmirror.errors import LabError, TopicMissing
from sparkmirror.lab.kafka.java_reference import JavaReference, JavaReferenceOptions
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.processes.process_identity import ProcessIdentity
from tests.support.kafka.clusters import SharedCluster, create_topic, read_values, write_values
from tests.support.waiting import wait_until

SMALL_JVM = JavaReferenceOptions(jvm=JvmOptions(heap_mb=256, log_level="INFO"))
ONE_REPLICA = {
    f"{topic}.replication.factor": "1"
    for topic in ("config.storage", "offset.storage", "status.storage")
}


def test_mirror_maker_mirrors_and_stops(
    primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"one", b"two")
    source, target = (f"{side}-{secrets.token_hex(3)}" for side in ("a", "b"))
    flow = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": primary.bootstrap,
        f"{target}.bootstrap.servers": backup.bootstrap,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "plugin.discovery": "service_load",
        **ONE_REPLICA,
    }
    with JavaReference.start_mirror_maker(flow, clusters=[target], setup=SMALL_JVM) as java:
        java.wait_for_line(r"replicating \d+ topic-partitions", 120)
        remote = f"{source}.{topic}"
        wait_until(lambda: _values(backup, remote) == [b"one", b"two"], f"{remote} has both", 120)
        assert java.stop(120), "it did not stop by itself"
        assert "Kafka MirrorMaker stopped" in java.log_file.read_text(encoding="utf-8")
    assert not java.directory.exists()


def _values(cluster: SharedCluster, topic: str) -> list[bytes | None]:
    try:
        return read_values(cluster.access, topic)
    except TopicMissing:
        return []


def test_connect_worker_answers_at_its_url_and_ends_when_killed(backup: SharedCluster) -> None:
    group = f"connect-{secrets.token_hex(3)}"
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    worker = {
        "bootstrap.servers": backup.bootstrap,
        "group.id": group,
        "key.converter": converter,
        "value.converter": converter,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "plugin.discovery": "service_load",
        **ONE_REPLICA,
    }
    with JavaReference.start_connect_worker(worker, setup=SMALL_JVM) as java:
        connection = http.client.HTTPConnection(urlsplit(java.rest_url).netloc, timeout=60)
        connection.request("GET", "/")
        assert json.load(connection.getresponse())["version"] == SMALL_JVM.version
        connection.close()
        pid = java.pid
        java.kill()
        assert not java.is_running()
        assert ProcessIdentity.of(pid) is None


def test_error_contains_the_last_lines_of_a_program_that_ends_at_once() -> None:
    no_clusters = {"clusters": "", "plugin.discovery": "service_load"}
    with pytest.raises(LabError) as failed:
        JavaReference.start_mirror_maker(no_clusters, setup=SMALL_JVM)
    assert str(failed.value).startswith("connect-mirror-maker has ended. Its last words: ")
    assert "No source->target replication flows." in str(failed.value)
