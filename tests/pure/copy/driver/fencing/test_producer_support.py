"""What a target lacks for a producer: decided by what it lists, and by what it refuses."""

from __future__ import annotations

import pytest
from kafka.protocol.metadata import FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdResponse

from sparkmirror.copy.driver.fencing.fence import (
    NOT_IDEMPOTENT_PRODUCER,
    NoTransactions,
    PartitionFencer,
)
from sparkmirror.copy.driver.fencing.producer_support import (
    ProducerSupport,
    producer_support,
    require_transactions,
    support_after_refusal,
)
from sparkmirror.errors import RequestRefused, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import API_VERSION_RANGES, FakeBroker, answering_broker

FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 10, 22, 24, 26
NEW_PRODUCER_ID = InitProducerIdResponse(
    throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=3
)
ALL = (INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        (ALL, None),
        ((ADD_PARTITIONS_TO_TXN, END_TXN), "at-least-once"),
        ((INIT_PRODUCER_ID, END_TXN), "no-fence"),
        ((INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN), "no-fence"),
        ((), "at-least-once"),
    ],
    ids=["kafka", "no-producer-ids", "no-transactions", "no-end-of-transactions", "nothing"],
)
def test_what_a_broker_does_not_list_is_missing(listed: tuple[int, ...], kind: str | None) -> None:
    versions = NodeApiVersions(cluster="target", ranges=dict.fromkeys(listed, (0, 3)))
    support = producer_support(versions)
    assert (support.event[0] if support.event else None) == kind
    assert support.has_producer_ids == (INIT_PRODUCER_ID in listed)
    assert support.has_transactions == (kind is None)


def test_a_refusal_takes_transactions_first_and_producer_ids_next() -> None:
    refusal = RequestRefused("target", "InitProducerId answered X", code=35)
    first = support_after_refusal(ProducerSupport(), refusal, is_transactional=True)
    assert (first.has_transactions, first.has_producer_ids) == (False, True)
    second = support_after_refusal(first, refusal, is_transactional=False)
    assert (second.has_transactions, second.has_producer_ids) == (False, False)
    assert second.event
    assert second.event[1].startswith(
        "the target refuses producer ids: InitProducerId answered X; batches are appended without"
    )


def test_another_error_than_a_refusal_is_no_reason_to_go_on_without_producer_ids() -> None:
    error = RequestRefused("target", "broken", code=ErrorCode.INVALID_TRANSACTION_TIMEOUT.value)
    with pytest.raises(RequestRefused, match="broken"):
        support_after_refusal(ProducerSupport(), error, is_transactional=True)


def test_exactly_once_needs_transactions() -> None:
    require_transactions(ProducerSupport(), "target")
    missing = producer_support(NodeApiVersions(cluster="target", ranges={}))
    with pytest.raises(
        UnsupportedByBroker, match=r"does not support InitProducerId.*source.support=disabled"
    ):
        require_transactions(missing, "target")
    with pytest.raises(UnsupportedByBroker, match="take TimestampRouter, and RegexRouter with"):
        require_transactions(missing, "target", routes_records=True)


def _fencer(broker: FakeBroker) -> tuple[PartitionFencer, Router]:
    router = Router(ClientConfig(cluster="target"), [broker.address])
    return PartitionFencer(router, "g-c"), router


def test_a_fencer_of_a_target_without_producer_ids_asks_for_none() -> None:
    ranges = {key: value for key, value in API_VERSION_RANGES.items() if key != INIT_PRODUCER_ID}
    with answering_broker({}, ranges=ranges) as broker:
        fencer, router = _fencer(broker)
        assert fencer.identity_for(TopicPartition("t", 0)) == NOT_IDEMPOTENT_PRODUCER
        assert not fencer.is_idempotent
        with pytest.raises(NoTransactions):
            fencer.fence([TopicPartition("t", 0)])
        assert INIT_PRODUCER_ID not in broker.api_keys()
        router.close()


def test_no_fence_stops_a_producer_id_without_a_transactional_id() -> None:
    """The driver's own producer id, too: it is the same for every lease that the driver grants."""
    answers = {INIT_PRODUCER_ID: lambda _: NEW_PRODUCER_ID}
    with answering_broker(answers, ranges=API_VERSION_RANGES) as broker:
        fencer, router = _fencer(broker)
        assert fencer.identity_for(TopicPartition("t", 0)) == (7, 3)
        assert fencer.identity_for(TopicPartition("t", 1)) == (7, 3)
        assert fencer.fenceable_producer_id(TopicPartition("t", 0)) is None
        router.close()


TRANSACTIONS = dict.fromkeys((ADD_PARTITIONS_TO_TXN, END_TXN), (0, 3))
FORBIDDEN = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _service(fence_id: ErrorCode, plain_id: ErrorCode) -> FakeBroker:
    """A broker that answers InitProducerId with these codes, with a fence id and without one."""

    def coordinator(broker: FakeBroker) -> FindCoordinatorResponse:
        host, port = broker.address
        found = FindCoordinatorResponse.Coordinator(
            key="g-c",
            node_id=0,
            host=host,
            port=port,
            error_code=fence_id.value,
            error_message="",
        )
        return FindCoordinatorResponse(throttle_time_ms=0, coordinators=[found])

    refused = InitProducerIdResponse(
        throttle_time_ms=0, error_code=plain_id.value, producer_id=-1, producer_epoch=-1
    )
    init = NEW_PRODUCER_ID if plain_id is ErrorCode.NONE else refused
    answers = {FIND_COORDINATOR: coordinator, INIT_PRODUCER_ID: lambda _: init}
    return answering_broker(answers, ranges={**API_VERSION_RANGES, **TRANSACTIONS})


@pytest.mark.parametrize(
    ("fence_id", "plain_id", "kind", "may_fence"),
    [
        (ErrorCode.NONE, ErrorCode.NONE, None, True),
        (FORBIDDEN, ErrorCode.NONE, None, False),
        (FORBIDDEN, ErrorCode.UNSUPPORTED_VERSION, "at-least-once", False),
        (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION, "at-least-once", False),
    ],
    ids=["both", "forbidden", "forbidden-and-refused", "refused"],
)
def test_the_event_says_what_the_leases_are(
    fence_id: ErrorCode, plain_id: ErrorCode, kind: str | None, may_fence: bool
) -> None:
    partition = TopicPartition("t", 0)
    with _service(fence_id, plain_id) as broker:
        fencer, router = _fencer(broker)
        assert fencer.may_fence(partition), "nothing is known to be missing yet"
        is_idempotent = fencer.identity_for(partition) != NOT_IDEMPOTENT_PRODUCER
        support = fencer.known_support
        router.close()
    assert (support.event[0] if support.event else None) == kind
    assert is_idempotent == (kind is None)
    assert fencer.may_fence(partition) is may_fence
