"""A writer of configs in transactions, on a cluster that has none."""

from __future__ import annotations

import pytest
from kafka.protocol.metadata import FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdResponse

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.store.fenced_writer import FencedWriter
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import API_VERSION_RANGES, FakeBroker, answering_broker

FIND_COORDINATOR, INIT_PRODUCER_ID = 10, 22


def _claim(broker: FakeBroker) -> None:
    router = Router(ClientConfig(cluster="target"), [broker.address])
    try:
        FencedWriter("connect-cluster-g").init_transactions(router)
    finally:
        router.close()


def test_without_producer_ids_the_worker_says_what_to_set() -> None:
    ranges = {key: value for key, value in API_VERSION_RANGES.items() if key != INIT_PRODUCER_ID}
    with (
        answering_broker({}, ranges=ranges) as broker,
        pytest.raises(
            UnsupportedByBroker,
            match=r"target: the broker does not support InitProducerId; .*support=disabled",
        ),
    ):
        _claim(broker)


def test_a_refused_producer_id_says_the_same() -> None:
    def coordinator(broker: FakeBroker) -> FindCoordinatorResponse:
        found = FindCoordinatorResponse.Coordinator(
            key="k",
            node_id=1,
            host=broker.address.host,
            port=broker.address.port,
            error_code=0,
            error_message=None,
        )
        return FindCoordinatorResponse(throttle_time_ms=0, coordinators=[found])

    def refusal(broker: FakeBroker) -> InitProducerIdResponse:
        del broker
        code = ErrorCode.UNSUPPORTED_VERSION.value
        return InitProducerIdResponse(
            throttle_time_ms=0, error_code=code, producer_id=-1, producer_epoch=-1
        )

    answers = {FIND_COORDINATOR: coordinator, INIT_PRODUCER_ID: refusal}
    with (
        answering_broker(answers) as broker,
        pytest.raises(UnsupportedByBroker, match=r"UNSUPPORTED_VERSION.*support=disabled"),
    ):
        _claim(broker)
