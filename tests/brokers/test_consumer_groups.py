"""Consumer groups are listed, described, read and written, with both protocols."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.cluster.group_states import EMPTY_STATE, describe_group_state
from sparkmirror.cluster.groups import (
    GROUP_IN_USE_CODES,
    alter_consumer_group_offsets,
    list_consumer_group_offsets,
    list_consumer_groups,
)
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic, write_values
from tests.support.kafka.group_members import commit_as_member, group_member
from tests.support.waiting import wait_until

STABLE = "Stable"


@pytest.fixture
def router(primary: SharedCluster) -> Iterator[Router]:
    made = primary.access.new_router()
    yield made
    made.close()


def test_an_unknown_group_is_absent_and_has_no_offsets(
    router: Router, unique_name: UniqueName
) -> None:
    group = unique_name("group")
    assert describe_group_state(router, group) is None
    assert list_consumer_group_offsets(router, [group]) == {group: {}}
    assert group not in {listed.group_id for listed in list_consumer_groups(router)}


def test_altered_offsets_create_a_group_and_are_read_back(
    router: Router, primary: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    create_topic(primary.access, topic, partitions=2)
    group = unique_name("group")
    offsets = {
        TopicPartition(topic, 0): OffsetAndMetadata(7, "a note"),
        TopicPartition(topic, 1): OffsetAndMetadata(0),
    }
    assert set(alter_consumer_group_offsets(router, group, offsets).values()) == {ErrorCode.NONE}
    assert list_consumer_group_offsets(router, [group]) == {group: offsets}
    assert describe_group_state(router, group) == EMPTY_STATE
    (listed,) = (one for one in list_consumer_groups(router) if one.group_id == group)
    assert (listed.group_type, listed.state) == ("classic", EMPTY_STATE)


def test_offsets_of_many_groups_are_read_at_once(
    router: Router, primary: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    create_topic(primary.access, topic)
    groups = [unique_name(f"group-{number}") for number in range(30)]
    partition = TopicPartition(topic, 0)
    for number, group in enumerate(groups):
        alter_consumer_group_offsets(router, group, {partition: OffsetAndMetadata(number)})
    found = list_consumer_group_offsets(router, groups)
    assert found == {
        group: {partition: OffsetAndMetadata(number)} for number, group in enumerate(groups)
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_group_are_refused_until_its_members_leave(
    router: Router, primary: SharedCluster, topic: str, unique_name: UniqueName, protocol: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"one", b"two")
    group, partition = unique_name("group"), TopicPartition(topic, 0)
    with group_member(primary, group, topic, protocol=protocol) as consumer:
        commit_as_member(consumer, topic, 1)
        wait_until(lambda: describe_group_state(router, group) == STABLE, "the group to be stable")
        (listed,) = (one for one in list_consumer_groups(router) if one.group_id == group)
        assert (listed.group_type, listed.state) == (protocol, STABLE)
        refused = alter_consumer_group_offsets(router, group, {partition: OffsetAndMetadata(2)})
        assert refused[partition] in GROUP_IN_USE_CODES
        assert list_consumer_group_offsets(router, [group]) == {
            group: {partition: OffsetAndMetadata(1)}
        }
    wait_until(
        lambda: describe_group_state(router, group) == EMPTY_STATE, "the member to leave the group"
    )
    accepted = alter_consumer_group_offsets(router, group, {partition: OffsetAndMetadata(2)})
    assert accepted == {partition: ErrorCode.NONE}
    assert list_consumer_group_offsets(router, [group]) == {
        group: {partition: OffsetAndMetadata(2)}
    }


def test_only_the_partition_that_does_not_exist_is_refused(
    router: Router, primary: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    create_topic(primary.access, topic)
    good, bad = TopicPartition(topic, 0), TopicPartition(topic, 9)
    codes = alter_consumer_group_offsets(
        router, unique_name("group"), {good: OffsetAndMetadata(1), bad: OffsetAndMetadata(1)}
    )
    assert codes == {good: ErrorCode.NONE, bad: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
