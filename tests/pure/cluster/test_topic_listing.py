"""A listing of all topics is decoded only if it has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import RecentListings, describe_topics, list_topics
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol import kafka_python_messages
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import (
    API_VERSION_RANGES,
    FakeBroker,
    answering_broker,
    leader_metadata,
)

METADATA = 3


@contextmanager
def router_to(
    answer: Callable[[FakeBroker], Any], metadata_version: int = 13
) -> Iterator[tuple[Router, FakeBroker]]:
    ranges = {**API_VERSION_RANGES, METADATA: (0, metadata_version)}
    with answering_broker({METADATA: answer}, ranges=ranges) as broker:
        access = ClusterAccess.from_properties("c", {"bootstrap.servers": str(broker.address)})
        with closing(access.new_router()) as router:
            yield router, broker


@pytest.mark.parametrize("version", [5, 7, 9, 13])
def test_an_unchanged_listing_is_not_decoded(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = []

    def answer(broker: FakeBroker) -> Any:
        answers.append(leader_metadata(broker))
        answers[-1].throttle_time_ms = len(answers)  # it is not part of the listing
        return answers[-1]

    with router_to(answer, version) as (router, broker):
        first = list_topics(router)
        assert first.topics == describe_topics(router)
        assert list(first.topics or ()) == ["t"]

        def no_decoding(*_: object, **__: object) -> None:
            raise AssertionError("the response is decoded")

        monkeypatch.setattr(kafka_python_messages.MetadataResponse, "decode", no_decoding)
        assert list_topics(router, first.digest) == (first.digest, None)
        assert [node.address for node in router.metadata.brokers.values()] == [broker.address]


def test_a_listing_that_another_client_has_decoded_is_not_decoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[int] = []
    decode: Any = kafka_python_messages.MetadataResponse.decode

    def counting_decode(*arguments: Any, **named: Any) -> Any:
        decoded.append(1)
        return decode(*arguments, **named)

    recent = RecentListings(size=1)
    with router_to(leader_metadata) as (router, broker):
        access = ClusterAccess.from_properties("c", {"bootstrap.servers": str(broker.address)})
        monkeypatch.setattr(kafka_python_messages.MetadataResponse, "decode", counting_decode)
        with closing(access.new_router()) as other:
            assert list_topics(router, recent=recent) == list_topics(other, recent=recent)
            assert len(decoded) == 1
            recent.add(b"another", {})
            assert list_topics(other, recent=recent).topics is not None
    assert len(decoded) == 2, "only the newest listings are kept"


def test_a_changed_listing_is_decoded() -> None:
    leaders = iter([1, 1, -1, -1])
    with router_to(lambda broker: leader_metadata(broker, leader=next(leaders))) as (router, _):
        digest = list_topics(router).digest
        assert list_topics(router, digest).topics is None
        changed = list_topics(router, digest)
        assert changed.topics is not None
        assert not changed.topics["t"].has_leaders
        assert list_topics(router, changed.digest).topics is None


def test_a_topic_with_an_error_is_left_out() -> None:
    with router_to(
        lambda broker: leader_metadata(broker, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ) as (router, _):
        assert list_topics(router).topics == {}
