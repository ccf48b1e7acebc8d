"""The error for a code that a broker gives for a topic."""

from __future__ import annotations

import pytest

from sparkmirror.cluster.describe_topics import topic_error
from sparkmirror.cluster.topic_changes import is_retriable
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    TooFewBrokers,
    TopicConfigRejected,
    TopicExists,
    TopicMissing,
    TopicRejected,
    UnsupportedByBroker,
)
from sparkmirror.wire.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("code", "expected", "retriable"),
    [
        (3, TopicMissing, False),
        (5, ClusterUnavailable, True),
        (6, ClusterUnavailable, True),
        (7, ClusterTimeout, True),
        (15, ClusterUnavailable, True),
        (17, TopicRejected, False),
        (29, NotAuthorized, False),
        (30, NotAuthorized, False),
        (31, NotAuthorized, False),
        (33, NotAuthorized, False),
        (35, UnsupportedByBroker, False),
        (36, TopicExists, False),
        (37, TopicRejected, False),
        (38, TooFewBrokers, False),
        (39, TopicRejected, False),
        (40, TopicConfigRejected, False),
        (41, ClusterUnavailable, True),
        (44, TopicRejected, False),
        (58, NotAuthorized, False),
        (87, TopicRejected, False),
        (9999, TopicRejected, False),
    ],
)
def test_every_error_code_of_a_topic_has_one_error(
    code: int, expected: type[ClusterError], retriable: bool
) -> None:
    assert type(topic_error("west", "CreateTopics", "orders", ErrorCode(code))) is expected
    assert is_retriable(ErrorCode(code)) is retriable


def test_an_error_names_cluster_request_code_topic_reason_and_what_to_do() -> None:
    error = topic_error("west", "CreateTopics", "orders", ErrorCode(38), "1 broker, 3 replicas")
    assert str(error) == (
        "west: CreateTopics answered INVALID_REPLICATION_FACTOR (38) for orders:"
        " 1 broker, 3 replicas; correct the topic's name or settings"
    )
