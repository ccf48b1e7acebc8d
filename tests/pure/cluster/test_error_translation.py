"""The client library's errors in our words."""

from __future__ import annotations

import pytest
from kafka import errors as kafka_errors

from sparkmirror.cluster import error_translation
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    TopicMissing,
    TopicRejected,
)


@pytest.mark.parametrize(
    ("code", "ours", "passes"),
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
        (36, TopicRejected, False),
        (37, TopicRejected, False),
        (38, TopicRejected, False),
        (39, TopicRejected, False),
        (40, TopicRejected, False),
        (41, ClusterUnavailable, True),
        (44, TopicRejected, False),
        (58, NotAuthorized, False),
        (87, ClusterError, False),
        (9999, ClusterError, False),
    ],
)
def test_every_code_has_one_meaning(code: int, ours: type[ClusterError], passes: bool) -> None:
    assert type(error_translation.error_from_code(code, "why", "west")) is ours
    assert error_translation.is_code_retriable(code) is passes


def test_an_error_names_the_cluster_the_fact_and_what_to_do() -> None:
    said = str(error_translation.error_from_code(29, "topic orders", "west"))
    assert said == (
        "west: TOPIC_AUTHORIZATION_FAILED (topic orders): check the user, the password and the ACLs"
    )


def test_a_broker_nobody_knows_any_more_is_worth_another_try() -> None:
    unknown = kafka_errors.UnknownBrokerIdError(3)
    assert error_translation.is_retriable(unknown)
    assert isinstance(error_translation.translate(unknown, "west"), ClusterUnavailable)


def test_nothing_of_the_library_leaves_the_seam() -> None:
    with pytest.raises(ClusterTimeout) as ours, error_translation.translating_errors("west"):
        raise kafka_errors.KafkaTimeoutError("too slow")
    assert isinstance(ours.value.__cause__, kafka_errors.KafkaTimeoutError)
    assert "too slow" in str(ours.value)
