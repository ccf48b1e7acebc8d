"""A new plan during the copy: partitions join, leave and change tasks without a fence."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter, numbered_records


def with_assignment(job: CopyJob, *tasks: tuple[TopicPartition, ...]) -> CopyJob:
    """The job with these tasks."""
    return replace(job, tasks=dict(enumerate(tasks)), task_count=len(tasks))


def leases_match_assignment(job: CopyJob, seen: CopySnapshot) -> bool:
    """Whether every partition of the plan is leased to its task, and no other is shown."""
    wanted = {str(partition): task for partition, task in job.task_of_partition().items()}
    return {key: view.task for key, view in seen.partitions.items()} == wanted and all(
        view.state == "leased" for view in seen.partitions.values()
    )


def test_partitions_join_leave_and_change_tasks_without_a_fence(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    later = f"{topic}-later"
    flow.create_topics({topic: (2, {}, {}), later: (1, {}, {})})
    first, second, third = (
        *(TopicPartition(topic, number) for number in range(2)),
        TopicPartition(later, 0),
    )
    job = flow.job({topic: 2, later: 1}, tasks=2)
    with flow.harness(with_assignment(job, (first,), (second,))) as harness:
        for plan in (
            with_assignment(job, (first,), (second,)),
            with_assignment(job, (second, third), (first,)),  # everything moves, and one is new
            with_assignment(job, (), ()),  # held still
            with_assignment(job, (second,), (third,)),  # one of them stays away
            with_assignment(job, (first, second), (third,)),
        ):
            for partition in (first, second, third):
                writer.write_batches(partition, numbered_records(range(50)), batch=10)
            harness.conductor.replan(plan)
            harness.wait_for_snapshot(
                "the plan to be followed", partial(leases_match_assignment, plan)
            )
            planned = set(map(str, plan.task_of_partition()))
            ends = flow.source_end_offsets({topic: 2, later: 1})
            harness.wait_until_caught_up({key: ends[key] for key in planned})
        assert [event.kind for event in harness.snapshot.events] == []
        harness.drain()
        flow.assert_mirrored({topic: 2, later: 1}, fences=0, harness=harness)
