"""The topics that a query computes: routed, checked, and remembered."""

from __future__ import annotations

import pytest

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.transform.query_topics import QueryTopics
from sparkmirror.transforms.record_transformer import FailedRecord

WORKER_TOPICS = ("connect-configs", "connect-offsets", "connect-status")


def failure(topics: QueryTopics, name: str | None) -> str:
    found = topics.find(name)
    assert isinstance(found, FailedRecord)
    return str(found.error)


def test_a_topic_goes_through_the_routes() -> None:
    assert QueryTopics(lambda name: f"{name}-v2").find("A.orders") == "A.orders-v2"


@pytest.mark.parametrize(
    "name",
    [
        *("__consumer_offsets", "__transaction_state", "mm2-offset-syncs.B.internal"),
        *("A.checkpoints.internal", "mm2-configs.A.internal", "schemas-internal"),
        *WORKER_TOPICS,
    ],
)
def test_a_record_for_an_internal_topic_fails(name: str) -> None:
    topics = QueryTopics(str, WORKER_TOPICS)
    assert failure(topics, name).endswith(f"{name} is an internal topic")
    assert topics.find(f"A.{name}.copy") == f"A.{name}.copy"


def test_a_route_to_an_internal_topic_fails_too() -> None:
    assert "is an internal topic" in failure(QueryTopics(lambda name: f"__{name}"), "orders")


def test_a_value_as_a_topic_fails_with_a_short_message() -> None:
    routed: list[str] = []

    def route(name: str) -> str:
        routed.append(name)
        return name

    assert len(failure(QueryTopics(route), "x" * 1_000_000)) < 400
    assert not routed, "it is neither routed nor remembered"


def test_a_missing_topic_fails() -> None:
    assert failure(QueryTopics(str), None).endswith("Topic cannot be null.")


def test_the_topics_of_the_worker_reach_the_task() -> None:
    settings = CopySettings(internal_topics=WORKER_TOPICS)
    assert CopySettings.from_json(settings.to_json()) == settings
    older = {key: v for key, v in settings.to_json().items() if key != "internal_topics"}
    assert CopySettings.from_json(older).internal_topics == ()
