"""The two programs of docs/spark.md on real Spark, compared with librdkafka.

One Spark application runs both. The stream runs a second time, from its checkpoint, after records
and a partition are added.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home
from sparkmirror.engine.driver.spark_conf import FAST_START_JVM_OPTIONS
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.lab.properties_file import write_properties
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S
from tests.support.cli.page_commands import python_blocks
from tests.support.kafka.batch_writer import now_ms
from tests.support.kafka.bulk_reader import ConsumedRecord, read_partitions

PAGE = "spark.md"
ORDERS, PAYMENTS, KEPT, MASKED = "orders", "payments", "orders-kept", "payments-masked"
PARTITIONS = 2
USER = "mirror"
READY = "ready for more records"
_Producer: Any = Producer

INLINE = {
    "kafka.sasl.jaas.config": "ScramLoginModule required username=u password=planted-jaas;",
    "kafka.ssl.key.password": "planted-password",
    "kafka.ssl.keystore.key": "planted-key",
    "kafka.sasl.oauthbearer.client.credentials.client.secret": "planted-client",
}
"""Options without an effect on a listener that asks for no login."""

BETWEEN_RUNS = f"""
query.explain(True)
inline = {INLINE!r}
servers = "kafka.bootstrap.servers"
again = spark.read.format("sparkmirror-kafka").options(**inline)
again = again.option("subscribe", "orders").option(servers, "primary.example:9092").load()
again.explain(True)
again = again.where("offset < 0").write.format("sparkmirror-kafka").options(**inline)
again.option(servers, "primary.example:9092").option("topic", "orders").mode("append").save()
print({READY!r}, flush=True)
input()
"""
AT_THE_END = """
print(json.dumps([json.loads(one.json) for one in query.recentProgress]))
try:
    spark.read.format("sparkmirror-kafka").option("subscripe", "orders").load().count()
except Exception as error:
    print(error)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """What the programs printed, logged and wrote, and the records before and after."""

    password: str
    payments_topic: str
    output: str
    progress: list[dict[str, Any]]
    texts: dict[str, bytes]
    orders: list[ConsumedRecord]
    kept: list[ConsumedRecord]
    payments: list[ConsumedRecord]
    masked: list[ConsumedRecord]


def produce(cluster: Cluster, topic: str, numbers: Sequence[int], partitions: int) -> None:
    """Write records with headers, keys and times of yesterday, which brokers keep."""
    producer = _Producer({"bootstrap.servers": bootstrap(cluster)})
    at = now_ms() - 24 * 3600 * 1000
    for number in numbers:
        producer.produce(
            topic,
            partition=number % partitions,
            timestamp=at + number,
            key=None if number % 3 == 0 else b"key-%d" % number,
            value=None if number % 10 == 7 else b"card 4000123412%06d of %d" % (number, number),
            headers=[("tenant", b"%d" % (40 + number % 5)), ("n", None)] if number % 2 else None,
        )
    assert producer.flush(60) == 0


def bootstrap(cluster: Cluster) -> str:
    return cluster.client_properties(ListenerProtocol.PLAINTEXT)["bootstrap.servers"]


def read(cluster: Cluster, topic: str, partitions: int) -> list[ConsumedRecord]:
    return read_partitions(topic, partitions, {"bootstrap.servers": bootstrap(cluster)})


def page_program(
    source: Cluster, target: Cluster, directory: Path, topics: Mapping[str, str]
) -> str:
    """Return the programs of the page with the names of this test; the stream comes twice."""
    login = target.client_properties(ListenerProtocol.SASL_PLAINTEXT, USER)
    write_properties(directory / "kafka.properties", {"password": target.spec.users[USER]})
    names = {
        "primary.example:9092": bootstrap(source),
        "backup.example:9092": bootstrap(target),
        "backup.example:9094": login["bootstrap.servers"],
        "/run/secrets/kafka.properties": str(directory / "kafka.properties"),
        "/var/lib/payments/checkpoint": str(directory / "checkpoint"),
        **{f'"{name}"': f'"{topic}"' for name, topic in topics.items()},
    }
    batch, stream = python_blocks(PAGE)
    program = "\n".join(["import json", batch, stream, BETWEEN_RUNS, stream, AT_THE_END])
    for name, used in names.items():
        assert name in program, name
        program = program.replace(name, used)
    return program


def spark_environment(directory: Path) -> dict[str, str]:
    home = linked_spark_home(os.environ)
    assert home is not None
    (directory / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (directory / "events").as_uri(),
        "spark.sql.shuffle.partitions": "2",
    }
    arguments = [f"--conf {key}={value}" for key, value in settings.items()]
    return {
        **os.environ,
        "SPARK_HOME": str(home.path),
        "SPARK_SUBMIT_OPTS": f"{FAST_START_JVM_OPTIONS} -XX:SharedArchiveFile={home.cds_archive}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": " ".join(["--master local[2,2]", *arguments, "pyspark-shell"]),
    }


@pytest.fixture(scope="module")
def page_run(
    program_clusters: tuple[Cluster, Cluster], tmp_path_factory: pytest.TempPathFactory
) -> PageRun:
    """Run both programs; the stream once more after records and a partition are added."""
    source, target = program_clusters
    directory = tmp_path_factory.mktemp("page")
    run = secrets.token_hex(3)
    topics = {name: f"page-{name}-{run}" for name in (ORDERS, PAYMENTS, KEPT, MASKED)}
    with Admin(source.access()) as admin:
        for name in (ORDERS, PAYMENTS):
            admin.create_topic(NewTopic(name=topics[name], partitions=PARTITIONS))
    with Admin(target.access(ListenerProtocol.PLAINTEXT)) as admin:
        admin.create_topic(NewTopic(name=topics[KEPT], partitions=PARTITIONS))
        admin.create_topic(NewTopic(name=topics[MASKED], partitions=PARTITIONS + 1))
    produce(source, topics[ORDERS], range(500), PARTITIONS)
    produce(source, topics[PAYMENTS], range(300), PARTITIONS)
    log = directory / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", page_program(source, target, directory, topics)],
            env=spark_environment(directory),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        try:
            assert process.stdout
            first: list[str] = []
            while (line := process.stdout.readline()) not in (f"{READY}\n", ""):
                first.append(line)
            assert line, log.read_text()[-5000:]
            with Admin(source.access()) as admin:
                assert admin.create_partitions({topics[PAYMENTS]: PARTITIONS + 1}) == {}
            produce(source, topics[PAYMENTS], range(300, 600), PARTITIONS + 1)
            output, _ = process.communicate("\n", SPARK_TIMEOUT_S)
            assert process.returncode == 0, log.read_text()[-5000:]
        finally:
            process.kill()
            process.wait()
    (progress,) = re.findall(r"^\[.*\]$", output, re.MULTILINE)
    files = [log, *(directory / "events").rglob("*"), *(directory / "checkpoint").rglob("*")]
    return PageRun(
        password=target.spec.users[USER],
        payments_topic=topics[PAYMENTS],
        output=output,
        progress=json.loads(progress),
        texts={str(file): file.read_bytes() for file in files if file.is_file()}
        | {"output": ("".join(first) + output).encode()},
        orders=read(source, topics[ORDERS], PARTITIONS),
        kept=read(target, topics[KEPT], PARTITIONS),
        payments=read(source, topics[PAYMENTS], PARTITIONS + 1),
        masked=read(target, topics[MASKED], PARTITIONS + 1),
    )


def test_the_batch_program_keeps_times_headers_and_partitions(page_run: PageRun) -> None:
    expected = [
        (one.partition, one.content)
        for one in page_run.orders
        if ("tenant", b"42") not in (headers_of(one) or [])
    ]
    assert len(expected) < len(page_run.orders) == 500
    assert [(one.partition, one.content) for one in page_run.kept] == expected


def headers_of(record: ConsumedRecord) -> Any:
    return record.content[3]


def test_the_stream_program_goes_on_from_its_checkpoint_and_finds_a_partition(
    page_run: PageRun,
) -> None:
    assert len(page_run.payments) == 600
    assert [(one.partition, one.content) for one in page_run.masked] == [
        (one.partition, masked_content(one)) for one in page_run.payments
    ]
    read_again = [one for one in page_run.progress if one["numInputRows"]]
    assert sum(one["numInputRows"] for one in read_again) == 300
    ends = page_run.progress[-1]["sources"][0]["endOffset"]
    counts = [sum(one.partition == number for one in page_run.payments) for number in range(3)]
    topic = page_run.payments_topic
    assert ends[topic] == {str(number): count for number, count in enumerate(counts)}
    assert ends.keys() == {topic, "topic ids"}
    assert "subscripe is not an option of sparkmirror-kafka here; did you mean subscribe?" in (
        page_run.output
    )


def masked_content(record: ConsumedRecord) -> tuple[object, ...]:
    time, key, value, headers = record.content
    assert value is None or isinstance(value, bytes)
    masked = value and re.sub(rb"[0-9]{12}([0-9]{4})", rb"************\1", value)
    return time, key, masked, headers


def test_the_password_is_in_no_plan_log_or_file_of_spark(page_run: PageRun) -> None:
    assert any("events" in name for name in page_run.texts)
    assert b"sparkmirror-kafka" in page_run.texts["output"]
    for secret in (page_run.password, "planted-"):
        found = [name for name, text in page_run.texts.items() if secret.encode() in text]
        assert found == [], secret
