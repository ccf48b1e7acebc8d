"""Consumer groups of one cluster: listed, their committed offsets read and altered.

Every function retries until its timeout, as `wire.net.routing` does. A group with an error has its
own entry; it does not affect other groups.

Offsets of a group can be altered only while the group has no members. The broker checks that, and
its refusal decides whether a group is in use.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.backoff import Backoff, seconds_left
from sparkmirror.errors import ClusterError, ClusterUnavailable
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, CoordinatorOf, CoordinatorType, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sparkmirror.wire.protocol.request import ClientRequest
from sparkmirror.wire.protocol.topics.topic_key import group_by_topic

CommittedOffsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata | None]
"""Committed offsets by partition; None for a partition without one."""

LIST_GROUPS = Api(ListGroupsRequest, ListGroupsResponse, range(1, 6))
OFFSET_FETCH = Api(OffsetFetchRequest, OffsetFetchResponse, range(3, 10))
OFFSET_COMMIT = Api(OffsetCommitRequest, OffsetCommitResponse, range(2, 10))

GROUP_IN_USE_CODES = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)
"""Codes of a broker that refuses to alter offsets because the group has members."""

_CONSUMER_PROTOCOLS = ("consumer", "")
_CONSUMER_TYPES = ("classic", "consumer", "")
_FIRST_WITH_MANY_GROUPS = 8
"""The first version of OffsetFetch for several groups in one request (3.0)."""
_GROUPS_PER_REQUEST = 200
_NO_GENERATION = -1
_NO_RETENTION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A listed consumer group. Old brokers give no `state` and no `group_type`."""

    group_id: str
    group_type: str = ""
    """classic or consumer"""
    state: str = ""


def list_consumer_groups(
    router: Router, *, timeout_s: float = CALL_TIMEOUT_S
) -> tuple[GroupListing, ...]:
    """List consumer groups of both protocols, by id.

    Leaves out groups of Connect workers, share groups and streams groups.
    """
    deadline, backoff = time.monotonic() + timeout_s, Backoff()
    while True:
        try:
            return _list_once(router, deadline)
        except ClusterError as error:
            # The next try uses the brokers of that time: a stopped broker has no groups any more.
            if not error.retriable or time.monotonic() >= deadline:
                raise
            router.on_retry(error)
        router.pause(backoff.next_delay_s())


def _list_once(router: Router, deadline: float) -> tuple[GroupListing, ...]:
    """List the groups of all brokers at once: each broker lists those it coordinates."""
    left_s = seconds_left(deadline)
    brokers = router.refresh((), timeout_s=left_s).brokers
    requests = {broker.address: _list_groups_request for broker in brokers.values()}
    groups: dict[str, GroupListing] = {}
    for answer in router.connections.request_all(requests, deadline).values():
        if isinstance(answer, ClusterError):
            raise answer
        if answer.error_code:
            raise error_for_code(
                router.client.cluster, LIST_GROUPS.name, ErrorCode(answer.error_code)
            )
        groups |= {group.group_id: group for group in _consumer_groups(answer)}
    return tuple(groups[group_id] for group_id in sorted(groups))


def _list_groups_request(connection: BrokerConnection) -> ClientRequest[ListGroupsResponse]:
    return LIST_GROUPS.build_request(ListGroupsRequest(), connection.api_versions)


def _consumer_groups(answer: ListGroupsResponse) -> Iterator[GroupListing]:
    for listed in answer.groups:
        group_type = (listed.group_type or "").lower()
        if listed.protocol_type in _CONSUMER_PROTOCOLS and group_type in _CONSUMER_TYPES:
            yield GroupListing(
                group_id=listed.group_id, group_type=group_type, state=listed.group_state or ""
            )


def list_consumer_group_offsets(
    router: Router, groups: Iterable[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, CommittedOffsets | ClusterError]:
    """Return the committed offsets or the error of each group. An unknown group has no offsets."""
    deadline, backoff = time.monotonic() + timeout_s, Backoff()
    results: dict[str, CommittedOffsets | ClusterError] = {}
    waiting = sorted(set(groups))
    while waiting:
        for at in range(0, len(waiting), _GROUPS_PER_REQUEST):
            results |= _fetch_from_coordinators(
                router, waiting[at : at + _GROUPS_PER_REQUEST], deadline
            )
        waiting = [group for group in waiting if _is_retriable(results[group])]
        if not waiting or time.monotonic() >= deadline:
            break
        for group in waiting:
            router.invalidate(_coordinator(group))
        router.pause(min(backoff.next_delay_s(), seconds_left(deadline)))
    return results


def alter_consumer_group_offsets(
    router: Router,
    group: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[TopicPartition, ErrorCode]:
    """Set offsets of a group without members. Returns the broker's code by partition.

    Creates a group that does not exist. GROUP_IN_USE_CODES are the codes of a group with members.
    """
    answer = router.call(
        OFFSET_COMMIT,
        lambda: OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=_NO_GENERATION,
            member_id="",
            group_instance_id=None,
            retention_time_ms=_NO_RETENTION,
            topics=[
                _committed_topic(topic, some, offsets) for topic, some in group_by_topic(offsets)
            ],
        ),
        _coordinator(group),
        codes=lambda answer: [p.error_code for t in answer.topics for p in t.partitions],
        timeout_s=timeout_s,
    )
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def _coordinator(group: str) -> CoordinatorOf:
    return CoordinatorOf(CoordinatorType.GROUP, group)


def _is_retriable(result: CommittedOffsets | ClusterError) -> bool:
    return isinstance(result, ClusterError) and result.retriable


def _fetch_from_coordinators(
    router: Router, groups: Sequence[str], deadline: float
) -> dict[str, CommittedOffsets | ClusterError]:
    """Send one request to each coordinator for all its groups."""
    results: dict[str, CommittedOffsets | ClusterError] = {}
    at_address: dict[Address, list[str]] = {}
    for group in groups:
        try:
            at_address.setdefault(router.find_address(_coordinator(group), deadline), []).append(
                group
            )
        except ClusterError as error:
            results[group] = error
    for address, members in at_address.items():
        try:
            results |= _fetch_from_coordinator(router, address, members, deadline)
        except ClusterError as error:
            router.connections.disconnect(address)
            results |= dict.fromkeys(members, error)
    return results


def _fetch_from_coordinator(
    router: Router, address: Address, groups: Collection[str], deadline: float
) -> dict[str, CommittedOffsets | ClusterError]:
    connection = router.connections.get(address, deadline)
    cluster, attempt_s = router.client.cluster, router.connections.attempt_timeout_s(deadline)
    _, highest = connection.api_versions.ranges.get(OffsetFetchRequest.API_KEY, (0, 0))
    if highest >= _FIRST_WITH_MANY_GROUPS:
        wanted = [
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=group, member_id=None, member_epoch=-1, topics=None
            )
            for group in groups
        ]
        versions = [
            version for version in OFFSET_FETCH.versions if version >= _FIRST_WITH_MANY_GROUPS
        ]
        message = OffsetFetchRequest(groups=wanted, require_stable=False)
        answer = connection.call(OFFSET_FETCH, message, versions=versions, timeout_s=attempt_s)
        read = {
            g.group_id: _read_offsets(cluster, g.group_id, g.error_code, g) for g in answer.groups
        }
        return {group: read.get(group, _missing_group_error(cluster, group)) for group in groups}
    results: dict[str, CommittedOffsets | ClusterError] = {}
    for group in groups:
        message = OffsetFetchRequest(group_id=group, topics=None, require_stable=False)
        answer = connection.call(OFFSET_FETCH, message, timeout_s=attempt_s)
        results[group] = _read_offsets(cluster, group, answer.error_code, answer)
    return results


def _read_offsets(
    cluster: str,
    group: str,
    code: int,
    answer: OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup,
) -> CommittedOffsets | ClusterError:
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    if code:
        return error_for_code(cluster, OFFSET_FETCH.name, ErrorCode(code), group)
    return {
        TopicPartition(topic.name, p.partition_index): OffsetAndMetadata(
            p.committed_offset, p.metadata or ""
        )
        if p.committed_offset >= 0
        else None
        for topic in answer.topics
        for p in topic.partitions
        if not p.error_code
    }


def _missing_group_error(cluster: str, group: str) -> ClusterError:
    return ClusterUnavailable(cluster, f"{group}: the coordinator did not answer for the group")


def _committed_topic(
    topic: str,
    partitions: Iterable[TopicPartition],
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> OffsetCommitRequest.OffsetCommitRequestTopic:
    return OffsetCommitRequest.OffsetCommitRequestTopic(
        name=topic,
        partitions=[
            OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=offsets[partition].offset,
                committed_leader_epoch=-1,
                committed_metadata=offsets[partition].metadata,
            )
            for partition in partitions
        ],
    )
