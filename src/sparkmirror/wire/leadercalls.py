"""One question about many partitions, put to all their leaders at once.

Each partition has an outcome of its own: what its leader answered, or a code that says why nobody
did. Partitions whose outcome may pass by itself are asked about again until the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.codes import Code
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.messages import A, Api, Q
from sparkmirror.wire.place import Address
from sparkmirror.wire.request import Request
from sparkmirror.wire.routing import CALL_TIMEOUT_S, LeaderOf, Router

V = TypeVar("V")

SETTLING_S = 3.0
"""A topic that is not there may have been created a moment ago: brokers hear of it in turn."""


class Outcome(NamedTuple, Generic[V]):
    """What became of one partition's question. `value` is there if the code is NONE."""

    code: Code
    value: V | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderCall(Generic[Q, A, V]):
    """How to ask about partitions, and how to read what is said of each."""

    api: Api[Q, A]
    make: Callable[[Sequence[TopicPartition]], Q]
    read: Callable[[A], Iterable[tuple[TopicPartition, int, V]]]


def ask_leaders(
    router: Router,
    call: LeaderCall[Q, A, V],
    partitions: Iterable[TopicPartition],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, Outcome[V]]:
    """Ask the leaders of some partitions; every partition gets an outcome."""
    started = time.monotonic()
    deadline, settled_at = started + timeout_s, started + SETTLING_S
    outcomes: dict[TopicPartition, Outcome[V]] = {}
    backoff = Backoff()
    waiting = set(partitions)
    while waiting:
        outcomes |= _ask_once(router, call, waiting, deadline)
        now = time.monotonic()
        waiting = {p for p in waiting if _may_pass(outcomes[p].code, settling=now < settled_at)}
        if now >= deadline:
            break
        for partition in waiting:
            router.forget(LeaderOf(partition))
        if waiting:
            time.sleep(min(backoff.pause_s(), deadline - now))
    return outcomes


def _may_pass(code: Code, *, settling: bool) -> bool:
    return code.is_worth_retrying and (settling or code is not Code.UNKNOWN_TOPIC_OR_PARTITION)


def _ask_once(
    router: Router,
    call: LeaderCall[Q, A, V],
    partitions: Collection[TopicPartition],
    deadline: float,
) -> dict[TopicPartition, Outcome[V]]:
    groups, unled = _group(router, partitions, deadline)
    outcomes: dict[TopicPartition, Outcome[V]] = {
        partition: Outcome(code, None) for partition, code in unled.items()
    }
    requests = {address: _question(call, sorted(group)) for address, group in groups.items()}
    for answer in router.links.gather(requests, deadline).values():
        if not isinstance(answer, ClusterError):
            for partition, code, value in call.read(answer):
                # Beside a code stands filler: offsets of -1, which must not be taken for a log's.
                outcomes[partition] = Outcome(Code(code), None if code else value)
        elif not answer.retriable:
            raise answer
    silent = Outcome[V](Code.NETWORK_EXCEPTION, None)
    return {partition: outcomes.get(partition, silent) for partition in partitions}


def _group(
    router: Router, partitions: Collection[TopicPartition], deadline: float
) -> tuple[dict[Address, list[TopicPartition]], dict[TopicPartition, Code]]:
    """Find out who leads what, and why nobody leads the rest."""
    unknown = {p.topic for p in partitions if router.metadata.broker_of(p) is None}
    if unknown:
        router.refresh(unknown, timeout_s=max(deadline - time.monotonic(), 0.0))
    groups: dict[Address, list[TopicPartition]] = {}
    unled: dict[TopicPartition, Code] = {}
    for partition in partitions:
        broker = router.metadata.broker_of(partition)
        if broker is None:
            unled[partition] = _why_nobody(router, partition)
        else:
            groups.setdefault(broker.address, []).append(partition)
    return groups, unled


def _why_nobody(router: Router, partition: TopicPartition) -> Code:
    topic = router.metadata.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        code = Code.NONE if topic is None else topic.code
        return Code.UNKNOWN_TOPIC_OR_PARTITION if code is Code.NONE else code
    return Code.LEADER_NOT_AVAILABLE


def _question(
    call: LeaderCall[Q, A, V], partitions: Sequence[TopicPartition]
) -> Callable[[Connection], Request[A]]:
    return lambda link: call.api.ask(call.make(partitions), link.versions)
