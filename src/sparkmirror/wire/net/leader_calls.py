"""One request for many partitions, sent to all their leaders at once.

Each partition has its own result: the leader's value or an error code. Partitions with a retriable
code are sent again until the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, LeaderOf, Router
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.apis import A, Api, Q
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.request import ClientRequest

V = TypeVar("V")
R = TypeVar("R")
V_co = TypeVar("V_co", covariant=True)

NEW_TOPIC_WAIT_S = 3.0
"""An unknown topic may have been created a moment ago: brokers learn of it one after another."""


class ApiResult(NamedTuple, Generic[V]):
    """The result for one partition or topic. `value` is set if the code is NONE."""

    code: ErrorCode
    value: V | None


class PartitionCall(Protocol[R, V_co]):
    """How to build a request for partitions, and how to read the result of each."""

    def build_request(
        self, partitions: Sequence[TopicPartition], versions: NodeApiVersions
    ) -> ClientRequest[R]:
        """Build the request for one leader."""
        ...

    def read_response(self, response: R) -> Iterable[tuple[TopicPartition, int, V_co]]:
        """Return the error code and the value of each partition."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderCall(Generic[Q, A, V]):
    """The call of an API with message classes."""

    api: Api[Q, A]
    build_message: Callable[[Sequence[TopicPartition]], Q]
    parse_response: Callable[[A], Iterable[tuple[TopicPartition, int, V]]]

    def build_request(
        self, partitions: Sequence[TopicPartition], versions: NodeApiVersions
    ) -> ClientRequest[A]:
        """Build the request for one leader."""
        return self.api.build_request(self.build_message(partitions), versions)

    def read_response(self, response: A) -> Iterable[tuple[TopicPartition, int, V]]:
        """Return the error code and the value of each partition."""
        return self.parse_response(response)


def call_leaders(
    router: Router,
    call: PartitionCall[R, V],
    partitions: Iterable[TopicPartition],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, ApiResult[V]]:
    """Call the leaders of partitions. Every partition has a result."""
    started = time.monotonic()
    deadline, new_until = router.deadline_after(timeout_s), started + NEW_TOPIC_WAIT_S
    results: dict[TopicPartition, ApiResult[V]] = {}
    backoff = Backoff()
    waiting = set(partitions)
    while waiting:
        results |= _call_once(router, call, waiting, deadline)
        now = time.monotonic()
        waiting = {p for p in waiting if _is_retriable(results[p].code, may_be_new=now < new_until)}
        if now >= deadline:
            break
        for partition in waiting:
            router.invalidate(LeaderOf(partition))
        if waiting:
            time.sleep(min(backoff.next_delay_s(), deadline - now))
    return results


def _is_retriable(code: ErrorCode, *, may_be_new: bool) -> bool:
    return code.is_retriable and (may_be_new or code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _call_once(
    router: Router,
    call: PartitionCall[R, V],
    partitions: Collection[TopicPartition],
    deadline: float,
) -> dict[TopicPartition, ApiResult[V]]:
    groups, leaderless = _group_by_leader(router, partitions, deadline)
    results: dict[TopicPartition, ApiResult[V]] = {
        partition: ApiResult(code, None) for partition, code in leaderless.items()
    }
    requests = {address: _request_builder(call, sorted(group)) for address, group in groups.items()}
    for answer in router.connections.request_all(requests, deadline).values():
        if not isinstance(answer, ClusterError):
            for partition, code, value in call.read_response(answer):
                # Beside an error code, offsets are filled with -1: these are no offsets of a log.
                results[partition] = ApiResult(ErrorCode(code), None if code else value)
        elif not answer.retriable:
            raise answer
    no_response = ApiResult[V](ErrorCode.NETWORK_EXCEPTION, None)
    return {partition: results.get(partition, no_response) for partition in partitions}


def _group_by_leader(
    router: Router, partitions: Collection[TopicPartition], deadline: float
) -> tuple[dict[Address, list[TopicPartition]], dict[TopicPartition, ErrorCode]]:
    """Group partitions by the address of their leader; the others have an error code."""
    unknown = {p.topic for p in partitions if router.metadata.leader_node(p) is None}
    if unknown:
        router.refresh(unknown, timeout_s=seconds_left(deadline))
    groups: dict[Address, list[TopicPartition]] = {}
    leaderless: dict[TopicPartition, ErrorCode] = {}
    for partition in partitions:
        broker = router.metadata.leader_node(partition)
        if broker is None:
            leaderless[partition] = _no_leader_code(router, partition)
        else:
            groups.setdefault(broker.address, []).append(partition)
    return groups, leaderless


def _no_leader_code(router: Router, partition: TopicPartition) -> ErrorCode:
    topic = router.metadata.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        code = ErrorCode.NONE if topic is None else topic.error_code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if code is ErrorCode.NONE else code
    return ErrorCode.LEADER_NOT_AVAILABLE


def _request_builder(
    call: PartitionCall[R, V], partitions: Sequence[TopicPartition]
) -> Callable[[BrokerConnection], ClientRequest[R]]:
    return lambda connection: call.build_request(partitions, connection.api_versions)
