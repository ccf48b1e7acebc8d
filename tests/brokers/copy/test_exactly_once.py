"""Exactly-once: whatever dies, a reader at read_committed sees every record once, in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.copy.committer import Committer
from sparkmirror.copy.delivery import Delivery
from sparkmirror.copy.fence import Overtaken
from sparkmirror.copy.job import Job
from sparkmirror.copy.ledger import Entry
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.copy.terms import Terms
from sparkmirror.errors import RequestRefused
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.tools import Tools
from sparkmirror.model import TopicPartition
from sparkmirror.wire.routing import Router
from sparkmirror.wire.transactions import describe_transaction
from tests.support.committed import (
    assert_exactly_once,
    assert_ledger_stands_at,
    committed,
    stable_end,
    wait_until_decided,
)
from tests.support.faults import everything
from tests.support.flows import Flow, remote_name
from tests.support.logs import edges
from tests.support.raw_copy import router_of
from tests.support.stage import PATIENCE_S, Stage
from tests.support.stage_process import StageProcess
from tests.support.waiting import wait_until
from tests.support.writing import MIXED, MIXED_LIMIT, Writer, numbered, write_mixed

SLOWLY: dict[str, Any] = {"bytes_per_s": 40_000}
"""So slow that faults find everything under way, even if the computer stands still for seconds."""
RARELY = 0.5
"""Seconds between commits, so that faults find a transaction open."""


def prepared(flow: Flow, topic: str, writer: Writer) -> dict[str, int]:
    """A topic with plain, transactional and fat partitions, and its number of partitions."""
    flow.create(topic, MIXED, remote=MIXED_LIMIT)
    write_mixed(writer, topic, records=600)
    return {topic: MIXED}


def exactly_once(flow: Flow, topics: dict[str, int], **more: Any) -> Job:
    """The job that copies these topics in transactions."""
    return flow.job(topics, delivery=Delivery.EXACTLY_ONCE, **more)


def slowly(flow: Flow, topics: dict[str, int], **more: Any) -> Job:
    """The same, slowly and with a transaction open most of the time."""
    return exactly_once(flow, topics, settings=SLOWLY, commit_every_s=RARELY, **more)


def something(seen: Snapshot) -> bool:
    """Whether anything is committed."""
    return seen.records > 0


def finish(flow: Flow, stage: Stage, topics: dict[str, int]) -> None:
    """Copy the rest at full speed, and compare."""
    stage.conductor.set_rate(0)
    ends = flow.ends(topics)
    stage.wait_until_caught_up(ends)
    stage.drain()
    assert_exactly_once(flow, topics, stage)
    assert_ledger_stands_at(flow, stage.job, ends)


@pytest.fixture
def target_router(flow: Flow) -> Iterator[Router]:
    """Talks to the target."""
    router = router_of(flow.target)
    yield router
    router.close()


def test_every_record_counts_once_and_java_sees_the_same(
    flow: Flow, topic: str, writer: Writer, target: Cluster
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    strangers = Writer(flow.target)
    aborted = strangers.begin(f"stranger-{topic}")
    aborted.write(TopicPartition(remote_name(topic), 0), numbered(range(3)))
    aborted.abort()
    strangers.close()
    writer.write_many(partition, numbered(range(200)))
    transaction = writer.begin(f"source-{topic}")
    transaction.write(partition, numbered(range(200, 250)))
    transaction.commit()
    with flow.stage(exactly_once(flow, {topic: 1}, commit_every_s=0.0)) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        for number in range(20):
            writer.write(partition, numbered([300 + number]))
        finish(flow, stage, {topic: 1})
        assert stage.snapshot.events == ()
    seen = [(one.value or b"").decode() for one in committed(flow.target, remote_name(topic))[0]]
    printed = Tools().check(
        "kafka-console-consumer",
        [
            *("--bootstrap-server", target.client_properties()["bootstrap.servers"]),
            *("--topic", remote_name(topic), "--from-beginning", "--max-messages", str(len(seen))),
            *("--isolation-level", "read_committed"),
        ],
    )
    assert printed.split("\n")[:-1] == seen


def test_a_task_may_be_killed_in_its_transaction(flow: Flow, topic: str, writer: Writer) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(slowly(flow, topics, tasks=2)) as stage:
        stage.wait_until_all_copy()
        stage.wait_for_more()
        stage.kill(0)
        stage.wait_for_event("takeover", times=len(stage.job.tasks[0]))
        stage.wait("every partition to be copied", everything)
        stage.wait_for_more()
        stage.kill(0)
        stage.kill(1)
        stage.wait_for_event("takeover", times=len(stage.job.tasks[0]) + MIXED)
        finish(flow, stage, topics)


def test_a_driver_may_be_killed_and_have_fewer_tasks_afterwards(
    flow: Flow, topic: str, writer: Writer
) -> None:
    topics = prepared(flow, topic, writer)
    for records in (100, 300):
        with StageProcess(slowly(flow, topics, tasks=3)) as doomed:
            doomed.wait_until_copied(records)
            doomed.kill()
    with flow.stage(slowly(flow, topics, tasks=1)) as stage:
        finish(flow, stage, topics)
        assert stage.snapshot.events == (), "what was committed says everything"


def test_tasks_that_slept_through_their_replacement_commit_nothing(
    flow: Flow, topic: str, writer: Writer
) -> None:
    """Two tasks sleep in their transactions; one task of another driver takes all they had."""
    topics = prepared(flow, topic, writer)
    with flow.stage(slowly(flow, topics, tasks=2)) as first:
        first.wait_until_all_copy()
        first.restarts = False
        zombies = dict(first.tasks)
        for task in zombies:
            first.freeze(task)
        with flow.stage(slowly(flow, topics, tasks=1)) as second:
            second.wait_for_more()
            for zombie in zombies.values():
                zombie.send_signal(signal.SIGCONT)
            wait_until(
                lambda: first.conductor.failure() is not None, "the first to stop", PATIENCE_S
            )
            assert isinstance(first.conductor.failure(), Overtaken)
            finish(flow, second, topics)
            assert second.snapshot.events == (), "nobody has disturbed it"


def test_whoever_was_replaced_can_neither_commit_nor_hand_out(
    flow: Flow, topic: str, target_router: Router
) -> None:
    flow.create(topic)
    job = exactly_once(flow, {topic: 1})
    entry = {TopicPartition(topic, 0): Entry(position=7)}
    before, after = Terms(target_router, job), Terms(target_router, job)
    before.begin()
    before.write(entry)
    term = before.take(0)
    assert term
    assert term.transactional_id == f"tests-{flow.name}-0"
    zombie = Committer(target_router, term, "source")
    zombie.commit(entry)
    after.begin()
    with pytest.raises(RequestRefused, match="INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
        zombie.commit(entry)
    with pytest.raises(Overtaken):
        before.write(entry)
    with pytest.raises(Overtaken):
        before.renew(0)
    successor = after.take(0)
    assert successor
    Committer(target_router, successor, "source").commit(entry)


def test_the_target_may_die_and_come_back(
    flow: Flow, topic: str, writer: Writer, target: Cluster
) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(slowly(flow, topics)) as stage:
        stage.wait("copying to begin", something)
        target.kill_broker(1)
        target.start_broker(1)
        finish(flow, stage, topics)


def test_a_transaction_that_takes_too_long_is_aborted_and_copied_again(
    flow: Flow, topic: str, writer: Writer, target_router: Router
) -> None:
    topics = prepared(flow, topic, writer)
    remotes = [TopicPartition(remote_name(topic), number) for number in range(MIXED)]
    job = exactly_once(
        flow,
        topics,
        settings={"bytes_per_s": 100_000},
        commit_every_s=1.0,
        transaction_timeout_s=5.0,
    )

    def all_is_decided() -> bool:
        return all(edges(target_router, p)[1] == stable_end(target_router, p) for p in remotes)

    with flow.stage(job) as stage:
        stage.wait("copying to begin", something)

        def sleeps_until_it_is_aborted() -> bool:
            """A task that has nothing open, or whose commit is on its way, is woken again."""
            stage.freeze(0)
            if not all_is_decided():
                seen = committed(flow.target, remote_name(topic))
                wait_until(all_is_decided, "the broker to abort it", PATIENCE_S)
                state = describe_transaction(target_router, f"tests-{flow.name}-0")
                if state and state.state == "CompleteAbort":
                    assert committed(flow.target, remote_name(topic)) == seen
                    return True
            stage.thaw(0)
            return False

        wait_until(sleeps_until_it_is_aborted, "it to sleep in a transaction", PATIENCE_S)
        stage.thaw(0)
        stage.wait_for_event("fenced")
        finish(flow, stage, topics)


def test_a_record_that_is_refused_does_not_hold_the_other_partitions(
    flow: Flow, topic: str, writer: Writer
) -> None:
    topics = {topic: 2}
    flow.create(topic, 2, remote={"max.message.bytes": "2000"})
    for number in range(2):
        writer.write(TopicPartition(topic, number), numbered(range(10)))
    writer.write(TopicPartition(topic, 0), numbered([10], size=3000))
    writer.write(TopicPartition(topic, 1), numbered(range(10, 20)))
    with flow.stage(exactly_once(flow, topics)) as stage:
        stage.wait_for_event("refused")
        stage.wait_until_caught_up({f"{topic}-0": 10, f"{topic}-1": 20})
        stage.drain()
    wait_until_decided(flow, topics)
    there = committed(flow.target, remote_name(topic))
    assert [len(there[number]) for number in range(2)] == [10, 20]


def test_both_ways_of_delivery_may_follow_each_other(
    flow: Flow, topic: str, writer: Writer
) -> None:
    """Each goes on where the other was killed, and where it ended well."""
    topics = prepared(flow, topic, writer)
    plain = flow.job(topics, tasks=2, settings=SLOWLY)
    for records, job in ((100, plain), (300, slowly(flow, topics, tasks=2)), (500, plain)):
        with StageProcess(job) as doomed:
            doomed.wait_until_copied(records)
            doomed.kill()
    with flow.stage(slowly(flow, topics)) as stage:
        stage.wait_for_more()
        stage.drain()
    with flow.stage(plain) as stage:
        stage.wait_for_more()
        stage.drain()
    with flow.stage(slowly(flow, topics)) as stage:
        finish(flow, stage, topics)
