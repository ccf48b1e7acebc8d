"""How each trouble is provoked and ended: a context manager for each name of the table.

A provocation gets the mirror and a topic of its own that MAIN copies. It yields what to look at.
The trouble ends with its block.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from kafka.admin import ACLOperation, ResourceType

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.group_membership import (
    GroupProtocol,
    JoinedGroup,
    join_group,
    leave_group,
    sync_group,
)
from tests.spark.troubles.right_provocations import RIGHT_PROVOCATIONS
from tests.spark.troubles.surfaces import Subject
from tests.spark.troubles.troubled_mirror import (
    EVERYTHING,
    MAIN,
    TOPIC_PREFIX,
    USER,
    TroubledMirror,
    create_topics,
    subject_of,
    write_records,
)
from tests.support.cli.mirror_process import connector_path, running_worker
from tests.support.kafka.admin_operations import delete_records, denied, set_topic_config
from tests.support.kafka.expired_certificate import expired_listener
from tests.support.processes import session_processes
from tests.support.spark.observed_driver import JVM, PYTHON_WORKER

Provocation = Callable[[TroubledMirror, str], AbstractContextManager[Subject]]

SECOND_BROKER = 2
"""One of the source that is no controller."""
CLOSED_PORT = "127.0.0.1:1"
SMALL_BYTES = 2_000
LARGE_BYTES = 5_000
FEWER_RECORDS = 3
TOPIC_ID_FILE = "partition.metadata"
CORRUPT_RECORD = ProducerRecord(key=b"connector-x", value=b"{not json", partition=0)
REMOTE = "east."
ON_LOSS = "sparkmirror.on.loss"
PLAINTEXT = ListenerProtocol.PLAINTEXT


def _clusters(mirror: TroubledMirror, sides: tuple[str, ...]) -> list[Cluster]:
    return [{"source": mirror.source, "target": mirror.target}[side] for side in sides]


@contextmanager
def _down(
    mirror: TroubledMirror, topic: str, *, sides: tuple[str, ...], records: int = 0
) -> Iterator[Subject]:
    """Take brokers down. `records` come before that, or after it if only the target is down.

    Another row may have taken them down already.
    """
    clusters = _clusters(mirror, sides)
    if "source" in sides and records:
        mirror.write(topic, records)
    for cluster in clusters:
        controller, *others = cluster.brokers
        for broker in others:
            cluster.stop_broker(broker)  # a killed one starts only when its session has expired
        cluster.kill_broker(controller)
    try:
        if "source" not in sides:
            mirror.write(topic, records)
        yield subject_of(topic)
    finally:
        for cluster in reversed(clusters):
            cluster.start_brokers()


@contextmanager
def _one_broker_down(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Kill the broker that leads one of the two partitions."""
    mirror.source.kill_broker(SECOND_BROKER)
    try:
        yield subject_of(topic)
    finally:
        mirror.source.start_broker(SECOND_BROKER)


@contextmanager
def _suspended(mirror: TroubledMirror, topic: str, *, side: str) -> Iterator[Subject]:
    """Suspend all brokers. If they are those of the target, there is something to copy."""
    [cluster] = _clusters(mirror, (side,))
    for broker in cluster.brokers.values():
        broker.pause()
    try:
        if side == "target":
            mirror.write(topic)
        yield subject_of(topic)
    finally:
        for broker in cluster.brokers.values():
            broker.resume()
        cluster.start_brokers()


@contextmanager
def _wrong_config(mirror: TroubledMirror, topic: str, **wrong: str) -> Iterator[Subject]:
    """Create a checkpoint connector with some wrong keys; correct them in the end.

    A checkpoint connector needs both clusters and, other than a source connector, no Spark.
    """
    name = topic.removeprefix(TOPIC_PREFIX)
    right = mirror.config("Checkpoint")
    mirror.put_config(name, right | {key.replace("__", "."): text for key, text in wrong.items()})
    try:
        yield Subject(connector=name, tidy=partial(mirror.delete, name))
    finally:
        mirror.put_config(name, right)


@contextmanager
def _deleted_in_trouble(mirror: TroubledMirror, topic: str, **wrong: str) -> Iterator[Subject]:
    """Create a checkpoint connector with some wrong keys; delete it in the end."""
    name = topic.removeprefix(TOPIC_PREFIX)
    wrong = {key.replace("__", "."): text for key, text in wrong.items()}
    mirror.put_config(name, mirror.config("Checkpoint") | wrong)
    try:
        yield Subject(connector=name)
    finally:
        mirror.delete(name)


@contextmanager
def _wrong_password(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    key = "source.cluster.sasl.jaas.config"
    password = mirror.source.spec.users[USER]
    wrong = mirror.config()[key].replace(password, "wrong")
    with _wrong_config(mirror, topic, **{key: wrong}) as subject:
        yield subject


@contextmanager
def _http_port(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    address = mirror.program.address.removeprefix("http://")
    with _wrong_config(mirror, topic, source__cluster__bootstrap__servers=address) as subject:
        yield subject


@contextmanager
def _expired_certificate(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    with expired_listener(mirror.directory) as trusting:
        wrong = {f"source.cluster.{key}": value for key, value in trusting.items()}
        with _wrong_config(mirror, topic, **wrong) as subject:
            yield subject


@contextmanager
def _no_matching_topic(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    name = topic.removeprefix(TOPIC_PREFIX)
    mirror.put_config(name, mirror.config(topics="no-such-topic"))
    try:
        yield Subject(connector=name)
    finally:
        mirror.delete(name)


@contextmanager
def _missing_right(
    mirror: TroubledMirror, topic: str, *, side: str, prefix: str = "", operation: ACLOperation
) -> Iterator[Subject]:
    """Take a right on a topic from the mirror while there is something to copy."""
    access = _clusters(mirror, (side,))[0].access(PLAINTEXT)
    with denied(access, USER, ResourceType.TOPIC, f"{prefix}{topic}", operation):
        mirror.write(topic)
        yield subject_of(topic)


@contextmanager
def _missing_right_to_create(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Create another topic at the source that the mirror may not create on the target."""
    created = f"{topic}.created"
    access = mirror.target.access(PLAINTEXT)
    create = ACLOperation.CREATE
    with (
        denied(access, USER, ResourceType.CLUSTER, "kafka-cluster", create),
        denied(access, USER, ResourceType.TOPIC, f"{REMOTE}{created}", create),
    ):
        create_topics(mirror.source, [created])
        yield replace(subject_of(topic), topic=created)


@contextmanager
def _loss_decided(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """In the end, skip what is lost."""
    subject = subject_of(topic)
    try:
        yield subject
    finally:
        path = f"{connector_path(subject.connector)}/config"
        mirror.program.call_json("PATCH", path, {ON_LOSS: "skip"})


@contextmanager
def _recreated(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    with Admin(mirror.source.access(PLAINTEXT)) as admin:
        admin.delete_topics([topic])
    create_topics(mirror.source, [topic])
    mirror.write(topic)
    with _loss_decided(mirror, topic) as subject:
        yield subject


@contextmanager
def _overtaken_by_retention(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    connector = subject_of(topic).connector
    mirror.program.call_json("PUT", f"{connector_path(connector)}/pause")
    mirror.program.wait_for_states(connector, "PAUSED", "PAUSED")
    mirror.write(topic)
    delete_records(mirror.source.access(PLAINTEXT), TopicPartition(topic, 0), 15)
    mirror.program.call_json("PUT", f"{connector_path(connector)}/resume")
    with _loss_decided(mirror, topic) as subject:
        yield subject


@contextmanager
def _truncated(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Empty the log of the partition while its broker is down."""
    with Admin(mirror.source.access(PLAINTEXT)) as admin:
        leader = admin.describe_topics([topic])[topic].partitions[0].leader
    assert leader
    mirror.source.stop_broker(leader)
    for file in (mirror.source.broker(leader).data_directory / f"{topic}-0").iterdir():
        if file.name != TOPIC_ID_FILE:
            file.unlink()
    mirror.source.start_broker(leader)
    mirror.write(topic, FEWER_RECORDS)
    with _loss_decided(mirror, topic) as subject:
        yield subject


@contextmanager
def _record_too_large(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    access, remote = mirror.target.access(PLAINTEXT), f"{REMOTE}{topic}"
    set_topic_config(access, remote, {"max.message.bytes": str(SMALL_BYTES)})
    write_records(mirror.source, topic, 1, LARGE_BYTES)
    try:
        yield subject_of(topic)
    finally:
        set_topic_config(access, remote, {"max.message.bytes": str(100 * LARGE_BYTES)})


@contextmanager
def _foreign_writer(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    write_records(mirror.target, f"{REMOTE}{topic}", 1)
    mirror.write(topic)
    yield subject_of(topic)


@contextmanager
def _no_right_to_fence(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Kill the task; the takeover of its partitions may not fence it."""
    access, [driver] = mirror.target.access(PLAINTEXT), mirror.program.drivers()
    kind = ResourceType.TRANSACTIONAL_ID
    with denied(access, USER, kind, EVERYTHING, ACLOperation.WRITE):
        for task in session_processes(driver.pid, PYTHON_WORKER):
            task.kill()
        yield subject_of(topic)


@contextmanager
def _driver_suspended(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    [driver] = mirror.program.drivers()
    driver.send_signal(signal.SIGSTOP)
    try:
        yield subject_of(topic)
    finally:
        driver.send_signal(signal.SIGCONT)


@contextmanager
def _driver_killed(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    [driver] = mirror.program.drivers()
    driver.kill()
    yield subject_of(topic)


@contextmanager
def _jvm_killed(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    [driver] = mirror.program.drivers()
    [jvm] = session_processes(driver.pid, JVM)
    jvm.kill()
    yield subject_of(topic)


@contextmanager
def _java_worker(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Run a worker of another group, which has a member with the protocol of Java's workers."""
    properties = mirror.other_properties("troubles-pair")
    router = mirror.target.access(PLAINTEXT).new_router("connect-java")
    java = GroupProtocol(
        group_id=properties["group.id"],
        protocol_type="connect",
        protocol="sessioned",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=60_000,
    )
    member = join_group(router, java)
    assert isinstance(member, JoinedGroup)
    sync_group(router, java.group_id, member, {})
    with ExitStack() as stack:
        stack.callback(router.close)
        ours = stack.enter_context(running_worker(properties, mirror.directory / topic))
        tidy = stack.pop_all().close
    try:
        yield Subject(connector=MAIN, program=ours, tidy=tidy)
    finally:
        leave_group(router, java.group_id, [member.member_id])


@contextmanager
def _corrupt_config(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    _write_config_record(mirror, CORRUPT_RECORD)
    try:
        yield subject_of(topic)
    finally:
        _write_config_record(mirror, replace(CORRUPT_RECORD, value=None))


def _write_config_record(mirror: TroubledMirror, record: ProducerRecord) -> None:
    config_topic = mirror.properties["config.storage.topic"]
    produce_records(mirror.target.access(PLAINTEXT), config_topic, [record])


PROVOCATIONS: dict[str, Provocation] = {
    "source-down-idle": partial(_down, sides=("source",)),
    "source-down-loaded": partial(_down, sides=("source",), records=2_000),
    "target-down-idle": partial(_down, sides=("target",)),
    "target-down-loaded": partial(_down, sides=("target",), records=200),
    "both-down": partial(_down, sides=("source", "target")),
    "one-broker-down": _one_broker_down,
    "source-suspended": partial(_suspended, side="source"),
    "target-suspended": partial(_suspended, side="target"),
    "source-down-at-start": partial(_wrong_config, source__cluster__bootstrap__servers=CLOSED_PORT),
    "target-down-at-start": partial(_wrong_config, target__cluster__bootstrap__servers=CLOSED_PORT),
    "unknown-host": partial(
        _deleted_in_trouble, source__cluster__bootstrap__servers="no-such-host.invalid:9092"
    ),
    "http-port": _http_port,
    "wrong-password": _wrong_password,
    "expired-certificate": _expired_certificate,
    "no-matching-topic": _no_matching_topic,
    "no-read-at-source": partial(_missing_right, side="source", operation=ACLOperation.READ),
    "no-describe-at-source": partial(
        _missing_right, side="source", operation=ACLOperation.DESCRIBE
    ),
    "no-write-at-target": partial(
        _missing_right, side="target", prefix=REMOTE, operation=ACLOperation.WRITE
    ),
    "no-create-at-target": _missing_right_to_create,
    **RIGHT_PROVOCATIONS,
    "no-right-to-fence": _no_right_to_fence,
    "recreated": _recreated,
    "overtaken-by-retention": _overtaken_by_retention,
    "truncated": _truncated,
    "record-too-large": _record_too_large,
    "foreign-writer": _foreign_writer,
    "driver-suspended": _driver_suspended,
    "driver-killed": _driver_killed,
    "jvm-killed": _jvm_killed,
    "java-worker": _java_worker,
    "config-topic-corrupt": _corrupt_config,
}
