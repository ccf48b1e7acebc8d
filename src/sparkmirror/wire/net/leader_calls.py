"""One question about many partitions, put to all their leaders at once.

Each partition has an outcome of its own: what its leader answered, or a code that says why nobody
did. Partitions whose outcome may pass by itself are asked about again until the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, LeaderOf, Router
from sparkmirror.wire.protocol.apis import A, Api, Q
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.request import ClientRequest

V = TypeVar("V")

NEW_TOPIC_WAIT_S = 3.0
"""A topic that is not there may have been created a moment ago: brokers hear of it in turn."""


class ApiResult(NamedTuple, Generic[V]):
    """What became of one partition's question. `value` is there if the code is NONE."""

    code: ErrorCode
    value: V | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderCall(Generic[Q, A, V]):
    """How to ask about partitions, and how to read what is said of each."""

    api: Api[Q, A]
    build_message: Callable[[Sequence[TopicPartition]], Q]
    parse_response: Callable[[A], Iterable[tuple[TopicPartition, int, V]]]


def call_leaders(
    router: Router,
    call: LeaderCall[Q, A, V],
    partitions: Iterable[TopicPartition],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, ApiResult[V]]:
    """Ask the leaders of some partitions; every partition gets an outcome."""
    started = time.monotonic()
    deadline, settled_at = started + timeout_s, started + NEW_TOPIC_WAIT_S
    outcomes: dict[TopicPartition, ApiResult[V]] = {}
    backoff = Backoff()
    waiting = set(partitions)
    while waiting:
        outcomes |= _call_once(router, call, waiting, deadline)
        now = time.monotonic()
        waiting = {p for p in waiting if _is_retriable(outcomes[p].code, settling=now < settled_at)}
        if now >= deadline:
            break
        for partition in waiting:
            router.invalidate(LeaderOf(partition))
        if waiting:
            time.sleep(min(backoff.next_delay_s(), deadline - now))
    return outcomes


def _is_retriable(code: ErrorCode, *, settling: bool) -> bool:
    return code.is_retriable and (settling or code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _call_once(
    router: Router,
    call: LeaderCall[Q, A, V],
    partitions: Collection[TopicPartition],
    deadline: float,
) -> dict[TopicPartition, ApiResult[V]]:
    groups, unled = _group_by_leader(router, partitions, deadline)
    outcomes: dict[TopicPartition, ApiResult[V]] = {
        partition: ApiResult(code, None) for partition, code in unled.items()
    }
    requests = {address: _request_builder(call, sorted(group)) for address, group in groups.items()}
    for answer in router.connections.request_all(requests, deadline).values():
        if not isinstance(answer, ClusterError):
            for partition, code, value in call.parse_response(answer):
                # Beside a code stands filler: offsets of -1, which must not be taken for a log's.
                outcomes[partition] = ApiResult(ErrorCode(code), None if code else value)
        elif not answer.retriable:
            raise answer
    silent = ApiResult[V](ErrorCode.NETWORK_EXCEPTION, None)
    return {partition: outcomes.get(partition, silent) for partition in partitions}


def _group_by_leader(
    router: Router, partitions: Collection[TopicPartition], deadline: float
) -> tuple[dict[Address, list[TopicPartition]], dict[TopicPartition, ErrorCode]]:
    """Find out who leads what, and why nobody leads the rest."""
    unknown = {p.topic for p in partitions if router.metadata.leader_node(p) is None}
    if unknown:
        router.refresh(unknown, timeout_s=max(deadline - time.monotonic(), 0.0))
    groups: dict[Address, list[TopicPartition]] = {}
    unled: dict[TopicPartition, ErrorCode] = {}
    for partition in partitions:
        broker = router.metadata.leader_node(partition)
        if broker is None:
            unled[partition] = _no_leader_code(router, partition)
        else:
            groups.setdefault(broker.address, []).append(partition)
    return groups, unled


def _no_leader_code(router: Router, partition: TopicPartition) -> ErrorCode:
    topic = router.metadata.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        code = ErrorCode.NONE if topic is None else topic.error_code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if code is ErrorCode.NONE else code
    return ErrorCode.LEADER_NOT_AVAILABLE


def _request_builder(
    call: LeaderCall[Q, A, V], partitions: Sequence[TopicPartition]
) -> Callable[[BrokerConnection], ClientRequest[A]]:
    return lambda link: call.api.build_request(call.build_message(partitions), link.api_versions)
