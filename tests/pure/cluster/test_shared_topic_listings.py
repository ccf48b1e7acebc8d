"""Which connectors of a process may use each other's listings of topics."""

from __future__ import annotations

import time
from typing import Any

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import TopicListing
from sparkmirror.cluster.shared_topic_listings import SharedTopicListings, is_same_user
from tests.support.kafka.fake_broker import FakeBroker, answering_broker, leader_metadata

METADATA = 3
LISTING = TopicListing(b"digest", {})
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}


def access(bootstrap: str = "a:9092", **properties: str) -> ClusterAccess:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    return ClusterAccess.from_properties("A", {"bootstrap.servers": bootstrap} | named)


def scram(user: str, password: str = "x") -> ClusterAccess:  # noqa: S107
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    jaas = f'{login} username="{user}" password="{password}";'
    return ClusterAccess.from_properties(
        "A", {"bootstrap.servers": "a:9092", **SCRAM, "sasl.jaas.config": jaas}
    )


def test_a_listing_serves_those_who_waited_when_it_was_sent() -> None:
    listings = SharedTopicListings()
    listings.add(access(), 5.0, LISTING)
    assert listings.find(access(), sent_after=5.0) is LISTING
    assert listings.find(access(), sent_after=5.1) is None
    newer = TopicListing(b"newer", {})
    listings.add(access(), 6.0, newer)
    assert listings.find(access(), sent_after=5.0) is newer


def test_a_listing_serves_only_the_same_user_of_the_same_brokers() -> None:
    assert is_same_user(access(), access())
    assert not is_same_user(access(), access("b:9092"))
    assert is_same_user(scram("u"), scram("u"))
    assert not is_same_user(scram("u"), scram("v"))
    assert not is_same_user(scram("u"), scram("u", "y"))
    assert not is_same_user(scram("u"), access())


def test_users_whom_certificates_name_share_nothing() -> None:
    assert not is_same_user(access(security_protocol="SSL"), access(security_protocol="SSL"))


def test_few_listings_are_kept() -> None:
    listings = SharedTopicListings()
    for number in range(9):
        listings.add(access(f"b{number}:9092"), 1.0, LISTING)
    found = [listings.find(access(f"b{number}:9092"), 0.0) for number in range(9)]
    assert found == [None] * 5 + [LISTING] * 4


def test_an_admin_uses_what_another_one_asked_for_since() -> None:
    asked: list[int] = []

    def answer(broker: FakeBroker) -> Any:
        asked.append(1)
        return leader_metadata(broker)

    with answering_broker({METADATA: answer}) as broker:
        reach, began = access(str(broker.address)), time.monotonic()
        with Admin(reach) as first, Admin(reach) as second:
            listing = first.list_topics_since(began)
            count = len(asked)
            assert second.list_topics_since(began) is listing
            assert len(asked) == count
            assert second.list_topics_since(time.monotonic()) == listing
            assert len(asked) > count
