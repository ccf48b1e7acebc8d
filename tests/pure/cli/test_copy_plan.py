"""What a copy would do follows from two listings and what was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.cli.copy_job import make_job
from sparkmirror.cli.copy_legs import Leg, refuse_strays, strangers
from sparkmirror.cli.copy_plan import plan_copy
from sparkmirror.copy.job import Start, StartAt
from sparkmirror.errors import BadRequest, NotFound
from sparkmirror.mirror.naming import DefaultPolicy
from sparkmirror.mirror.topic_plan import GrownRemoteTopic
from sparkmirror.model import TopicPartition
from tests.support.copy_requests import cluster, request, survey, topic


def test_missing_topics_are_created_and_small_ones_grow() -> None:
    found = survey([topic("a", 2, 3), topic("b", 3), topic("c", 1)], [topic("b"), topic("c", 9)], 2)
    plan = plan_copy(request(".*"), found)
    (new,) = plan.topics.create
    assert (new.name, new.partitions, new.replication_factor) == ("a", 2, 2)
    assert plan.topics.grow == (GrownRemoteTopic(name="b", partitions=3),)
    assert plan.remote_topics == {"a": "a", "b": "b", "c": "c"}


def test_as_many_replicas_as_asked_for() -> None:
    found = survey([topic("a", 1, 3)], [], brokers=2)
    (new,) = plan_copy(request("a", replication_factor=1), found).topics.create
    assert new.replication_factor == 1
    with pytest.raises(BadRequest, match=r"--replication-factor 3: B has 2 broker\(s\) only"):
        plan_copy(request("a", replication_factor=3), found)


def test_partitions_are_dealt_in_turn_to_as_many_tasks_as_there_is_work_for() -> None:
    found = survey([topic("a", 3)], [])
    dealt = plan_copy(request("a"), found).tasks
    assert dealt == (
        (TopicPartition("a", 0), TopicPartition("a", 2)),
        (TopicPartition("a", 1),),
    )
    assert len(plan_copy(request("a", tasks_max=16), found).tasks) == 3


def test_positions_go_to_the_offsets_topic_of_mirrormaker() -> None:
    found = survey([topic("a")], [], brokers=5)
    new = plan_copy(request("a"), found).offsets_topic
    assert new is not None
    assert (new.name, new.partitions, new.replication_factor) == ("mm2-offsets.A.internal", 25, 3)
    assert new.configs == {"cleanup.policy": "compact"}
    alone = plan_copy(request("a"), survey([topic("a")], [], brokers=1)).offsets_topic
    assert alone is not None
    assert alone.replication_factor == 1
    there = survey([topic("a")], [topic("mm2-offsets.A.internal", 25)])
    assert plan_copy(request("a"), there).offsets_topic is None


def test_internal_topics_and_copies_from_the_target_are_never_copied() -> None:
    names = ("a", "__consumer_offsets", "mm2-offsets.X.internal", "B.orders")
    found = survey([topic(name) for name in names], [])
    plan = plan_copy(request(".*", policy=DefaultPolicy()), found)
    assert plan.remote_topics == {"a": "A.a"}
    assert plan.left_out == ("B.orders", "__consumer_offsets", "mm2-offsets.X.internal")


def test_heartbeats_are_copied_only_if_asked_for() -> None:
    found = survey([topic("a"), topic("heartbeats")], [])
    assert list(plan_copy(request("a"), found).remote_topics) == ["a"]
    assert plan_copy(request("heartbeats"), found).remote_topics == {"heartbeats": "A.heartbeats"}


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("ordres", "A has no topic 'ordres', only orders, payments; did you mean orders?"),
        ("x", "A has no topic 'x', only orders, payments; a pattern must match the whole name."),
        ("__.*", "Of the topics of A, '__.*' means only __consumer_offsets: what is internal"),
    ],
    ids=["near", "far", "internal"],
)
def test_a_pattern_that_finds_nothing_is_told_with_what_there_is(
    pattern: str, sentence: str
) -> None:
    found = survey([topic("orders"), topic("payments"), topic("__consumer_offsets")], [])
    with pytest.raises(NotFound) as refused:
        plan_copy(request(pattern, exclude=("__.*",)), found)
    assert str(refused.value).startswith(sentence)


def test_a_topic_is_never_copied_onto_itself() -> None:
    found = replace(survey([topic("a")], [topic("a")]), target=cluster("id of A"))
    with pytest.raises(BadRequest, match="same cluster .*use --policy default"):
        plan_copy(request("a"), found)
    assert plan_copy(request("a", policy=DefaultPolicy()), found).remote_topics == {"a": "A.a"}


def test_no_two_topics_are_copied_into_one() -> None:
    class OneName(DefaultPolicy):
        def format_remote_topic(self, source_alias: str, topic: str) -> str:
            return "all"

    with pytest.raises(BadRequest, match="a, b would all be copied into all"):
        plan_copy(request(".*", policy=OneName()), survey([topic("a"), topic("b")], []))


def test_the_job_has_mirrormakers_names_and_each_task_its_share_of_the_rate() -> None:
    asked = request("a", bytes_per_s=1000)
    job = make_job(asked, plan_copy(asked, survey([topic("a", 3)], [])))
    assert (job.connector, job.group_id) == ("MirrorSourceConnector", "A-mm2")
    assert job.offsets_topic == "mm2-offsets.A.internal"
    assert job.settings.bytes_per_s == 500
    assert (job.settings.source_alias, job.settings.target_alias) == ("A", "B")


def test_offsets_for_what_is_not_copied_are_refused() -> None:
    copied = [TopicPartition("a", 0)]
    start = Start(at=StartAt.OFFSETS, offsets={"a-0": 1, "b-0": 2})
    with pytest.raises(BadRequest, match="names b-0, which is not copied"):
        refuse_strays(start, copied)
    refuse_strays(None, copied)


def test_copies_with_records_that_the_ledger_does_not_know_are_found() -> None:
    plan = plan_copy(request(".*"), survey([topic("a"), topic("b"), topic("c")], []))
    legs = {
        TopicPartition("a", 0): Leg(first=0, goal=9, target_end=5),
        TopicPartition("b", 0): Leg(first=0, goal=9, target_end=5, is_known=True),
        TopicPartition("c", 0): Leg(first=0, goal=9),
    }
    assert strangers(plan, legs) == ["a"]
