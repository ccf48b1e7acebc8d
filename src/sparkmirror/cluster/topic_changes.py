"""Topics created, grown and deleted, with one result per topic.

Each call goes to the controller. A topic whose error may pass is asked for again, without the
topics that are decided; then the call waits until brokers know of the change.

A request whose response was lost, or that timed out, may have been carried out. So for a topic of
such a request, "already exists" (create) and "unknown topic" (delete) count as success. The result
names these topics: this call or another one has changed them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.cluster.describe_topics import NewTopic, describe_topics, topic_error
from sparkmirror.errors import ClusterError, ClusterTimeout
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Controller, Router
from sparkmirror.wire.protocol.apis import A, Api, Q
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

CREATE_TOPICS = Api(CreateTopicsRequest, CreateTopicsResponse, range(2, 8))
CREATE_PARTITIONS = Api(CreatePartitionsRequest, CreatePartitionsResponse, range(1, 4))
DELETE_TOPICS = Api(DeleteTopicsRequest, DeleteTopicsResponse, range(3, 7))
BROKER_TIMEOUT_MS = 6_000
"""How long the controller may wait for brokers. Less than the timeout of a request."""
POLL_INTERVAL_S = 0.1

W = TypeVar("W")


class TopicResult(NamedTuple):
    """The controller's result for one topic."""

    name: str
    code: ErrorCode
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCall(Generic[Q, A, W]):
    """How to request a change of some topics, and how to read the result of each."""

    api: Api[Q, A]
    build_message: Callable[[Mapping[str, W]], Q]
    read_results: Callable[[A], Iterable[TopicResult]]
    already_done: ErrorCode = ErrorCode.NONE
    """The code that means success for a topic of a request whose outcome is unknown."""


class TopicChangesResult(NamedTuple):
    """The errors by topic, and the topics that this call or another one has changed."""

    failed: dict[str, ClusterError]
    unconfirmed: frozenset[str]
    """The topics that are as requested after a request whose outcome is unknown."""


def create_topics(
    router: Router, topics: Sequence[NewTopic], *, timeout_s: float = CALL_TIMEOUT_S
) -> TopicChangesResult:
    """Create topics and wait for their leaders."""
    deadline = time.monotonic() + timeout_s
    result = _change_topics(
        router, _CREATE_TOPICS, {topic.name: topic for topic in topics}, deadline
    )
    created = {topic.name for topic in topics} - result.failed.keys()
    _wait_for_leaders(router, created, "was created and has no leader", deadline)
    return result


def create_partitions(
    router: Router, partitions: Mapping[str, int], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, ClusterError]:
    """Raise topics to these numbers of partitions and wait for their leaders.

    Returns the errors by topic. A topic that has as many already stays as it is.
    """
    deadline = time.monotonic() + timeout_s
    smaller = _smaller_topics(router, partitions, deadline)
    failed, _ = _change_topics(router, _CREATE_PARTITIONS, smaller, deadline)
    grown = {name: count for name, count in partitions.items() if name not in failed}
    _wait_while(
        router,
        lambda: _smaller_topics(router, grown, deadline).keys(),
        "lacks its new partitions",
        deadline,
    )
    _wait_for_leaders(router, grown.keys(), "has partitions without a leader", deadline)
    return failed


def delete_topics(
    router: Router, names: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, ClusterError]:
    """Delete topics and wait until they are gone. Returns the errors by topic."""
    deadline = time.monotonic() + timeout_s
    failed, _ = _change_topics(router, _DELETE_TOPICS, dict.fromkeys(names), deadline)
    deleted = set(names) - failed.keys()
    _wait_while(
        router,
        lambda: describe_topics(router, deleted, timeout_s=seconds_left(deadline)).keys(),
        "was deleted and is still there",
        deadline,
    )
    return failed


# -- one call --------------------------------------------------------------------------------------


def _change_topics(
    router: Router, call: TopicCall[Q, A, W], wanted: Mapping[str, W], deadline: float
) -> TopicChangesResult:
    """Send a change until every topic has a final result."""
    undecided = dict(wanted)
    outcome_unknown: Counter[str] = Counter()
    failed: dict[str, ClusterError] = {}
    unconfirmed: set[str] = set()
    backoff = Backoff()

    def build_message() -> Q:
        outcome_unknown.update(undecided.keys())
        return call.build_message(undecided)

    def read_codes(answer: A) -> list[ErrorCode]:
        results = list(call.read_results(answer))
        outcome_unknown.subtract(
            result.name for result in results if result.code is not ErrorCode.REQUEST_TIMED_OUT
        )
        # This code concerns the whole request: the router looks for the controller.
        return [result.code for result in results if result.code is ErrorCode.NOT_CONTROLLER]

    while undecided:
        answer = router.call(
            call.api,
            build_message,
            Controller(),
            codes=read_codes,
            timeout_s=seconds_left(deadline),
        )
        is_last_try = time.monotonic() >= deadline
        results = {result.name: result for result in call.read_results(answer)}
        for name in list(undecided):
            result = results.get(name, TopicResult(name, ErrorCode.REQUEST_TIMED_OUT, None))
            if is_retriable(result.code) and not is_last_try:
                continue
            del undecided[name]
            if result.code is call.already_done and outcome_unknown[name] > 0:
                unconfirmed.add(name)
            elif result.code is not ErrorCode.NONE:
                failed[name] = topic_error(router.client.cluster, call.api.name, *result)
        if undecided:
            time.sleep(min(backoff.next_delay_s(), seconds_left(deadline)))
    return TopicChangesResult(failed, frozenset(unconfirmed))


def is_retriable(code: ErrorCode) -> bool:
    """Whether the same request may succeed in a moment. A missing topic does not come by itself."""
    return code.is_retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _create_topics_request(topics: Mapping[str, NewTopic]) -> CreateTopicsRequest:
    creatable = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            creatable(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[],
                configs=[
                    creatable.CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs.items()
                ],
            )
            for topic in topics.values()
        ],
        timeout_ms=BROKER_TIMEOUT_MS,
        validate_only=False,
    )


def _create_partitions_request(partitions: Mapping[str, int]) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in partitions.items()
        ],
        timeout_ms=BROKER_TIMEOUT_MS,
        validate_only=False,
    )


def _delete_topics_request(names: Mapping[str, None]) -> DeleteTopicsRequest:
    # Version 6 has `topics`, older versions have `topic_names`.
    return DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=_NO_ID) for name in names],
        topic_names=list(names),
        timeout_ms=BROKER_TIMEOUT_MS,
    )


_NO_ID = UUID(int=0)
_CREATE_TOPICS = TopicCall(
    api=CREATE_TOPICS,
    build_message=_create_topics_request,
    read_results=lambda answer: [
        TopicResult(topic.name, ErrorCode(topic.error_code), topic.error_message)
        for topic in answer.topics
    ],
    already_done=ErrorCode.TOPIC_ALREADY_EXISTS,
)
_CREATE_PARTITIONS = TopicCall(
    api=CREATE_PARTITIONS,
    build_message=_create_partitions_request,
    read_results=lambda answer: [
        # Only smaller topics are sent. So this code means that the topic has grown since.
        TopicResult(
            topic.name,
            ErrorCode.NONE
            if topic.error_code == ErrorCode.INVALID_PARTITIONS
            else ErrorCode(topic.error_code),
            topic.error_message,
        )
        for topic in answer.results
    ],
)
_DELETE_TOPICS = TopicCall(
    api=DELETE_TOPICS,
    build_message=_delete_topics_request,
    read_results=lambda answer: [
        TopicResult(topic.name or "", ErrorCode(topic.error_code), topic.error_message)
        for topic in answer.responses
    ],
    already_done=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


# -- waiting ---------------------------------------------------------------------------------------


def _wait_for_leaders(router: Router, names: Collection[str], what: str, deadline: float) -> None:
    def leaderless() -> set[str]:
        found = describe_topics(router, names, timeout_s=seconds_left(deadline))
        return {name for name in names if name not in found or not found[name].has_leaders}

    _wait_while(router, leaderless, what, deadline)


def _wait_while(
    router: Router, find: Callable[[], Collection[str]], what: str, deadline: float
) -> None:
    """Wait until `find` returns no topic. Brokers learn of a change after the controller."""
    while left := find():
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"topic {', '.join(sorted(left))} {what}: check whether the brokers are well",
            )
        time.sleep(POLL_INTERVAL_S)


def _smaller_topics(
    router: Router, partitions: Mapping[str, int], deadline: float
) -> dict[str, int]:
    """Return the topics with fewer partitions than these. A missing topic has none."""
    found = describe_topics(router, partitions.keys(), timeout_s=seconds_left(deadline))
    return {
        name: count
        for name, count in partitions.items()
        if name not in found or len(found[name].partitions) < count
    }
