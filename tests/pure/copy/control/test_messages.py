"""Control messages travel as JSON, whole, over a control connection."""

from __future__ import annotations

import socket
import traceback

import pytest

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.message_json import MalformedMessage, decode, encode
from sparkmirror.copy.control.messages import (
    ControlMessage,
    ReportAck,
    Welcome,
)
from sparkmirror.copy.job import CopyJob, DataLossPolicy, StartMode, StartPosition
from sparkmirror.copy.settings import CopySettings, target_limits_from_json, target_limits_to_json
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot, PartitionView
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.control_client import handshake_keys
from tests.support.copy.control_messages import CONTROL_MESSAGES
from tests.support.kafka.record_batches import WITHOUT_ZSTD

CIPHERS = handshake_keys().task_ciphers()


@pytest.mark.parametrize("message", CONTROL_MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_reads_back_as_it_was_written(message: ControlMessage) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"type":"nonsense"}',
        b'{"type":"hello"}',
        b'{"type":["hello"]}',
        b'{"type":"hello","task":"1","attempt":2,"host":"h","pid":3}',
        b'{"type":"hello","task":true,"attempt":2,"host":"h","pid":3}',
        b'{"type":"report","progress":{},"runs":[["t-0",1e999,2,3]]}',
        b'{"type":"report","progress":{"t-0":[1]}}',
        b'{"type":"grant","leases":[{}],"target_limits":{},"transactional_producer":null}',
        b"[" * 100_000,
    ],
)
def test_malformed_bytes_are_refused_with_advice(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="same version"):
        decode(data)


def test_neither_a_repr_nor_the_error_of_a_malformed_welcome_shows_client_properties() -> None:
    secret = "hunter2"
    assert secret not in repr(Welcome(settings={"source": {"sasl.jaas.config": secret}}))
    malformed = b'{"type":"welcome","settings":{"p":"hunter2"},"more":"hunter2"}'
    with pytest.raises(MalformedMessage, match="62 bytes are not a Welcome") as raised:
        decode(malformed)
    shown = "".join(traceback.format_exception(raised.value))
    assert secret not in shown


def test_settings_job_target_and_snapshot_travel_as_json() -> None:
    settings = CopySettings(source={"bootstrap.servers": "a:1"}, rack="r1", bytes_per_s=5)
    assert CopySettings.from_json(settings.to_json()) == settings
    target = TargetLimits(
        max_message_bytes=5,
        max_produce_bytes=4,
        log_append_time=True,
        codecs=WITHOUT_ZSTD,
        fallback_codec=CompressionType.GZIP,
    )
    assert target_limits_from_json(target_limits_to_json(target)) == target
    assert target.max_batch_bytes == 4
    job = CopyJob(
        connector="c",
        group_id="g",
        settings=settings,
        offsets_topic="o",
        remote_topics={"t": "s.t"},
        tasks={0: (TopicPartition("t", 0),), 2: (TopicPartition("t", 1),)},
        task_count=3,
        start=StartPosition(at=StartMode.OFFSETS, offsets={"t-0": 4}),
        on_loss=DataLossPolicy.SKIP,
        untransformed_topics=("t",),
    )
    assert CopyJob.from_json(job.to_json()) == job
    assert job.remote_partition(TopicPartition("t", 1)) == ("s.t", 1)
    snapshot = CopySnapshot(
        partitions={"t-0": PartitionView(remote="s.t", task=0, state="leased", end=9, position=4)},
        events=(CopyEvent(at_ms=1, kind="retention", partition="t-0", text="x"),),
    )
    assert CopySnapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot.partitions["t-0"].lag == 5


def test_client_properties_stay_out_of_reprs() -> None:
    assert "hunter2" not in repr(CopySettings(source={"sasl.jaas.config": "hunter2"}))


def test_messages_arrive_whole_from_any_pieces() -> None:
    ours, theirs = socket.socketpair()
    received: list[ControlMessage] = []
    keys = handshake_keys()
    connection = ControlConnection(ours, received.append, keys.driver_ciphers())
    cipher = keys.task_ciphers().outgoing
    payload = b"".join(
        len(data).to_bytes(4, "big") + data
        for data in (cipher.encrypt(encode(m)) for m in CONTROL_MESSAGES)
    )
    for at in range(0, len(payload), 7):
        theirs.sendall(payload[at : at + 7])
        connection.on_readable()
    assert received == list(CONTROL_MESSAGES)
    connection.close()
    theirs.close()


def test_a_lost_connection_raises_and_stays_closed() -> None:
    ours, theirs = socket.socketpair()
    connection = ControlConnection(ours, lambda _: None, CIPHERS)
    theirs.close()
    with pytest.raises(ControlConnectionLost, match="closed by the other end"):
        connection.on_readable()
    with pytest.raises(ControlConnectionLost):
        connection.send(ReportAck())


def test_a_too_large_length_closes_the_connection() -> None:
    ours, theirs = socket.socketpair()
    connection = ControlConnection(ours, lambda _: None, CIPHERS)
    theirs.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(ControlConnectionLost, match="larger than"):
        connection.on_readable()
    theirs.close()
