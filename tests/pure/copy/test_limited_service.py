"""The stand-in for a service that is not Apache Kafka does what tests of such targets need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka.protocol.producer import InitProducerIdResponse, ProduceResponse

from sparkmirror.errors import ClusterError, UnsupportedByBroker
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import INIT_PRODUCER_ID
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import InitProducerIdRequest
from sparkmirror.wire.protocol.produce import (
    OutgoingBatch,
    ProduceResponseData,
    produce_request,
    produce_version,
)
from tests.support.kafka.fake_broker import FakeBroker, answering_broker
from tests.support.kafka.limited_service import EVENT_HUBS, LimitedService, ServiceLimits
from tests.support.kafka.record_batches import build_stored_batch
from tests.support.waiting import wait_until

PRODUCE, INIT = 0, 22


def _produced(broker: FakeBroker) -> ProduceResponse:
    topic = ProduceResponse.TopicProduceResponse(name="t")
    topic.partition_responses = [
        ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
            index=0, error_code=0, base_offset=4, record_errors=[], error_message=None
        )
    ]
    return ProduceResponse(responses=[topic], throttle_time_ms=0)


def _initialised(broker: FakeBroker) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=9, producer_epoch=0)


@contextmanager
def served(limits: ServiceLimits) -> Iterator[tuple[LimitedService, BrokerConnection]]:
    answers = {PRODUCE: _produced, INIT: _initialised}
    ranges = {0: (3, 9), 18: (0, 4), 22: (0, 5)}  # Produce, ApiVersions, InitProducerId
    with (
        answering_broker(answers, ranges=ranges) as broker,
        LimitedService(limits) as service,
    ):
        service.forward_to(broker.address)
        connection = BrokerConnection.open(
            ClientConfig(cluster="target"), Address.parse(service.address)
        )
        yield service, connection
        connection.close()


def _produce(connection: BrokerConnection, batch: bytes) -> ProduceResponseData:
    version = produce_version(connection.api_versions, by_id=False)
    request = produce_request(version, [OutgoingBatch("t", 0, [batch])], timeout_ms=1000)
    return connection.send_and_wait(request, 20)


def _batch(codec: CompressionType, count: int = 3) -> bytes:
    return bytes(build_stored_batch([Record(n, 1, b"k", b"v" * 20) for n in range(count)], codec))


def test_an_absent_api_is_not_listed() -> None:
    with served(EVENT_HUBS) as (_, connection):
        assert connection.api_versions.supports(PRODUCE)
        with pytest.raises(UnsupportedByBroker):
            connection.call(INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None))


def test_a_high_version_is_not_listed_and_closes_the_connection() -> None:
    with served(EVENT_HUBS) as (service, connection):
        assert connection.api_versions.ranges[PRODUCE] == (3, 7)
        _produce(connection, _batch(CompressionType.NONE))
        assert service.closed_for_absent_api == 0
        batch = OutgoingBatch("t", 0, [_batch(CompressionType.NONE)])
        with pytest.raises(ClusterError):
            connection.send_and_wait(produce_request(8, [batch], timeout_ms=1000), 20)
        assert service.closed_for_absent_api == 1


def test_a_listed_api_may_be_refused() -> None:
    refused = ErrorCode.UNSUPPORTED_VERSION
    with served(ServiceLimits(init_producer_id_code=refused)) as (_, connection):
        answer = connection.call(INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None))
        assert answer.error_code == refused


def test_a_refused_codec_is_not_appended() -> None:
    with served(EVENT_HUBS) as (service, connection):
        (answer,) = _produce(connection, _batch(CompressionType.LZ4)).partition_responses.values()
        assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        (answer,) = _produce(connection, _batch(CompressionType.GZIP)).partition_responses.values()
        assert (answer.error_code, answer.base_offset) == (0, 4)
        assert service.requests[PRODUCE] == 2


def test_a_large_request_closes_the_connection() -> None:
    with served(ServiceLimits(max_request_bytes=2000)) as (service, connection):
        _produce(connection, _batch(CompressionType.NONE))
        with pytest.raises(ClusterError):
            _produce(connection, _batch(CompressionType.NONE, count=500))
        assert service.closed_for_size == 1
        assert service.largest_request <= 2000


def test_an_idle_connection_is_closed() -> None:
    with served(ServiceLimits()) as (service, connection):
        service.change(idle_s=0.1)
        _produce(connection, _batch(CompressionType.NONE))
        wait_until(lambda: service.closed_for_idling == 1, "the connection to be closed")
        with pytest.raises(ClusterError):
            _produce(connection, _batch(CompressionType.NONE))


def test_a_lost_request_reaches_the_broker() -> None:
    with served(ServiceLimits()) as (service, connection):
        service.lose_next_produce(late_after_s=0.1)
        with pytest.raises(ClusterError):
            _produce(connection, _batch(CompressionType.NONE))
        wait_until(lambda: service.lost_produce_requests == 1, "the broker to get it")
