"""The plan of a copy follows from the request and the descriptions of both clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.cli.copy.plan import make_job, plan_copy
from sparkmirror.cli.copy.ranges import (
    PartitionRange,
    topics_with_foreign_records,
    validate_start_offsets,
)
from sparkmirror.copy.job import StartMode, StartPosition
from sparkmirror.errors import BadRequest, NotFound
from sparkmirror.mirror.topics.replication_policy import DefaultReplicationPolicy
from sparkmirror.mirror.topics.topic_plan import NewRemotePartitions
from sparkmirror.model import TopicPartition
from tests.support.cli.copy_requests import (
    cluster_descriptions,
    cluster_view,
    copy_request,
    topic_view,
)


def test_missing_topics_are_created_and_missing_partitions_added() -> None:
    clusters = cluster_descriptions(
        [topic_view("a", 2, 3), topic_view("b", 3), topic_view("c", 1)],
        [topic_view("b"), topic_view("c", 9)],
        2,
    )
    plan = plan_copy(copy_request(".*"), clusters)
    (new,) = plan.topics.new_topics
    assert (new.name, new.partitions, new.replication_factor) == ("a", 2, 2)
    assert plan.topics.new_partitions == (NewRemotePartitions(name="b", partitions=3),)
    assert plan.remote_topics == {"a": "a", "b": "b", "c": "c"}


def test_replication_factor_is_limited_by_the_number_of_brokers() -> None:
    clusters = cluster_descriptions([topic_view("a", 1, 3)], [], brokers=2)
    (new,) = plan_copy(copy_request("a", replication_factor=1), clusters).topics.new_topics
    assert new.replication_factor == 1
    with pytest.raises(BadRequest, match=r"--replication-factor 3: B has 2 broker\(s\) only"):
        plan_copy(copy_request("a", replication_factor=3), clusters)


def test_partitions_are_assigned_round_robin_and_no_task_is_empty() -> None:
    clusters = cluster_descriptions([topic_view("a", 3)], [])
    tasks = plan_copy(copy_request("a"), clusters).tasks
    assert tasks == (
        (TopicPartition("a", 0), TopicPartition("a", 2)),
        (TopicPartition("a", 1),),
    )
    assert len(plan_copy(copy_request("a", tasks_max=16), clusters).tasks) == 3


def test_missing_offsets_topic_is_created_with_the_name_of_mirrormaker() -> None:
    clusters = cluster_descriptions([topic_view("a")], [], brokers=5)
    new = plan_copy(copy_request("a"), clusters).offsets_topic
    assert new is not None
    assert (new.name, new.partitions, new.replication_factor) == ("mm2-offsets.A.internal", 25, 3)
    assert new.configs == {"cleanup.policy": "compact"}
    with_one_broker = plan_copy(
        copy_request("a"), cluster_descriptions([topic_view("a")], [], brokers=1)
    ).offsets_topic
    assert with_one_broker is not None
    assert with_one_broker.replication_factor == 1
    with_offsets_topic = cluster_descriptions(
        [topic_view("a")], [topic_view("mm2-offsets.A.internal", 25)]
    )
    assert plan_copy(copy_request("a"), with_offsets_topic).offsets_topic is None


def test_internal_topics_and_copies_from_the_target_are_never_copied() -> None:
    names = ("a", "__consumer_offsets", "mm2-offsets.X.internal", "B.orders")
    clusters = cluster_descriptions([topic_view(name) for name in names], [])
    plan = plan_copy(copy_request(".*", policy=DefaultReplicationPolicy()), clusters)
    assert plan.remote_topics == {"a": "A.a"}
    assert plan.skipped_topics == ("B.orders", "__consumer_offsets", "mm2-offsets.X.internal")


def test_heartbeats_are_copied_only_if_the_pattern_matches() -> None:
    clusters = cluster_descriptions([topic_view("a"), topic_view("heartbeats")], [])
    assert list(plan_copy(copy_request("a"), clusters).remote_topics) == ["a"]
    assert plan_copy(copy_request("heartbeats"), clusters).remote_topics == {
        "heartbeats": "A.heartbeats"
    }


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("ordres", "A has no topic 'ordres', only orders, payments; did you mean orders?"),
        ("x", "A has no topic 'x', only orders, payments; a pattern must match the whole name."),
        ("__.*", "On A, '__.*' matches only __consumer_offsets: topics that are internal"),
    ],
    ids=["near", "far", "internal"],
)
def test_error_of_a_pattern_without_match_names_the_existing_topics(
    pattern: str, message: str
) -> None:
    clusters = cluster_descriptions(
        [topic_view("orders"), topic_view("payments"), topic_view("__consumer_offsets")], []
    )
    with pytest.raises(NotFound) as raised:
        plan_copy(copy_request(pattern, exclude=("__.*",)), clusters)
    assert str(raised.value).startswith(message)


def test_a_topic_is_never_copied_onto_itself() -> None:
    clusters = replace(
        cluster_descriptions([topic_view("a")], [topic_view("a")]), target=cluster_view("id of A")
    )
    with pytest.raises(BadRequest, match="same cluster .*use --policy default"):
        plan_copy(copy_request("a"), clusters)
    assert plan_copy(
        copy_request("a", policy=DefaultReplicationPolicy()), clusters
    ).remote_topics == {"a": "A.a"}


def test_no_two_topics_are_copied_into_one() -> None:
    class OneName(DefaultReplicationPolicy):
        def format_remote_topic(self, source_alias: str, topic: str) -> str:
            return "all"

    with pytest.raises(BadRequest, match="a, b would all be copied into all"):
        plan_copy(
            copy_request(".*", policy=OneName()),
            cluster_descriptions([topic_view("a"), topic_view("b")], []),
        )


def test_job_has_the_names_of_mirrormaker_and_divides_the_rate_by_its_tasks() -> None:
    request = copy_request("a", bytes_per_s=1000)
    job = make_job(request, plan_copy(request, cluster_descriptions([topic_view("a", 3)], [])))
    assert (job.connector, job.group_id) == ("MirrorSourceConnector", "A-mm2")
    assert job.offsets_topic == "mm2-offsets.A.internal"
    assert job.settings.bytes_per_s == 500
    assert (job.settings.source_alias, job.settings.target_alias) == ("A", "B")


def test_start_offset_of_a_partition_that_is_not_copied_is_rejected() -> None:
    copied = [TopicPartition("a", 0)]
    start = StartPosition(at=StartMode.OFFSETS, offsets={"a-0": 1, "b-0": 2})
    with pytest.raises(BadRequest, match="names b-0, which is not copied"):
        validate_start_offsets(start, copied)
    validate_start_offsets(None, copied)


def test_remote_topics_with_records_and_no_stored_position_are_found() -> None:
    plan = plan_copy(
        copy_request(".*"),
        cluster_descriptions([topic_view("a"), topic_view("b"), topic_view("c")], []),
    )
    ranges = {
        TopicPartition("a", 0): PartitionRange(start_offset=0, end_offset=9, target_end_offset=5),
        TopicPartition("b", 0): PartitionRange(
            start_offset=0, end_offset=9, target_end_offset=5, is_in_ledger=True
        ),
        TopicPartition("c", 0): PartitionRange(start_offset=0, end_offset=9),
    }
    assert topics_with_foreign_records(plan, ranges) == ["a"]
