"""What brokers send: responses of every API, and record batches."""

from __future__ import annotations

import importlib
import pkgutil
import socket
import time
from typing import Any

from kafka.protocol.admin import DescribeGroupsResponse
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.producer import ProduceResponse

import sparkmirror.cluster
import sparkmirror.wire.protocol
from sparkmirror.cluster import group_states
from sparkmirror.errors import BatchError, ClusterError
from sparkmirror.wire.batch.aborted_transactions import read_control_type
from sparkmirror.wire.batch.header import MAGIC, iter_batches, read_header
from sparkmirror.wire.batch.message_format_v1 import read_messages
from sparkmirror.wire.batch.records import read_records
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.channel import Channel
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.transport import PlaintextTransport
from sparkmirror.wire.protocol import apis
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.fetch import FetchParams, fetch_request
from sparkmirror.wire.protocol.produce import produce_request
from sparkmirror.wire.protocol.request import ClientRequest
from tests.fuzz.fuzz_target import FuzzTarget, direct
from tests.support.kafka.fake_broker import ReceivedRequest, response_reply
from tests.support.kafka.record_batches import JAVA_BATCHES

_ENDPOINT = Endpoint(
    cluster="source", address=Address("broker", 9092), security_protocol="PLAINTEXT"
)
_FIRST_CORRELATION_ID = 1
_PATIENCE_S = 1e9


def _exchanges() -> list[tuple[ClientRequest[Any], Any]]:
    """Every request of every version, with an answer of kafka-python."""
    found: list[tuple[ClientRequest[Any], Any]] = []
    for api in _apis():
        arguments = ("group",) if api.request_type in _FOR_ONE_GROUP else ()
        found += [
            (api.build_request_at(api.request_type(*arguments), version), _answer_of(api))
            for version in api.versions
        ]
    for version in range(7, 18):
        found.append((fetch_request(version, FetchParams(), ()), _fetch_answer()))
    for version in range(3, 13):
        found.append((produce_request(version, (), timeout_ms=1), ProduceResponse()))
    for version in range(7, 14):
        request = apis.METADATA.build_request_at(apis.METADATA.request_type(), version)
        found.append((request, _metadata_answer()))
    return found


_FOR_ONE_GROUP = (
    group_states.DescribeGroupsRequest,
    group_states.ConsumerGroupDescribeRequest,
)
"""Requests of our own. kafka-python writes answers that are like theirs."""


def _answer_of(api: Api[Any, Any]) -> Any:
    return DescribeGroupsResponse() if api.request_type in _FOR_ONE_GROUP else api.response_type()


def _apis() -> list[Api[Any, Any]]:
    modules = [
        importlib.import_module(found.name)
        for package in (sparkmirror.cluster, sparkmirror.wire.protocol)
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]
    return [
        value for module in modules for value in vars(module).values() if isinstance(value, Api)
    ]


def _metadata_answer() -> Any:
    topic = MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition(
        partition_index=0, leader_id=1, leader_epoch=1, replica_nodes=[1, 2], isr_nodes=[1]
    )
    return MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="b", port=9092)],
        topics=[topic(error_code=0, name="t", partitions=[partition])],
        cluster_id="c",
        controller_id=1,
    )


def _fetch_answer() -> Any:
    topic = FetchResponse.FetchableTopicResponse
    return FetchResponse(
        responses=[topic(topic="t", partitions=[topic.PartitionData(partition_index=0)])]
    )


_EXCHANGES = _exchanges()


def _seed(number: int) -> bytes:
    """The number of an exchange in two bytes, and its answer as a broker frames it."""
    request, answer = _EXCHANGES[number]
    received = ReceivedRequest(request.api_key, request.version, _FIRST_CORRELATION_ID, "", b"")
    return number.to_bytes(2, "big") + response_reply(answer)(received)


def _answers(data: bytes) -> None:
    request, _ = _EXCHANGES[int.from_bytes(data[:2], "big") % len(_EXCHANGES)]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        channel = Channel(_ENDPOINT, PlaintextTransport(ours), BufferPool(), "fuzz")
        answers: list[object] = []
        channel.send(request, on_response=answers.append, deadline=time.monotonic() + _PATIENCE_S)
        theirs.sendall(data[2:])
        theirs.shutdown(socket.SHUT_WR)
        try:
            while not answers:
                channel.on_readable()
        except ClusterError:  # after the answer, the end of the connection
            if not answers:
                raise


ANSWERS = FuzzTarget(
    name="broker answers",
    seeds=[_seed(number) for number in range(len(_EXCHANGES))],
    open_parser=direct(_answers),
    errors=(ClusterError,),
)

_BATCH_LIMIT_BYTES = 1 << 20


def _batches(data: bytes) -> None:
    for span in iter_batches(data):
        batch = memoryview(data)[span.start : span.end]
        try:
            if span.magic < MAGIC:
                read_messages(batch, _BATCH_LIMIT_BYTES)
                continue
            header = read_header(batch)
            if header.is_control:
                read_control_type(header, batch)
            read_records(header, batch, _BATCH_LIMIT_BYTES)
        except BatchError:
            continue


BATCHES = FuzzTarget(
    name="record batches",
    seeds=[bytes(recorded.buffer) for recorded in JAVA_BATCHES.values()],
    open_parser=direct(_batches),
    errors=(BatchError,),
)
