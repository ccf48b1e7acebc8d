"""Another plan while copying: partitions come, go and change tasks, and nothing is fenced."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sparkmirror.copy.job import Job
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.model import TopicPartition
from tests.support.flows import Flow
from tests.support.writing import Writer, numbered


def dealt(job: Job, *tasks: tuple[TopicPartition, ...]) -> Job:
    """The same job, its partitions dealt by hand."""
    return replace(job, tasks=tasks)


def is_leased_as_dealt(job: Job, seen: Snapshot) -> bool:
    """Whether every partition of the plan is leased to its task, and no other is shown."""
    wanted = {str(partition): n for n, task in enumerate(job.tasks) for partition in task}
    return {key: view.task for key, view in seen.partitions.items()} == wanted and all(
        view.state == "leased" for view in seen.partitions.values()
    )


def test_partitions_come_go_and_change_tasks_without_a_fence(
    flow: Flow, topic: str, writer: Writer
) -> None:
    later = f"{topic}-later"
    flow.create_many({topic: (2, {}, {}), later: (1, {}, {})})
    first, second, third = (
        *(TopicPartition(topic, number) for number in range(2)),
        TopicPartition(later, 0),
    )
    job = flow.job({topic: 2, later: 1}, tasks=2)
    with flow.stage(dealt(job, (first,), (second,))) as stage:
        for plan in (
            dealt(job, (first,), (second,)),
            dealt(job, (second, third), (first,)),  # everything moves, and one is new
            dealt(job, (), ()),  # held still
            dealt(job, (second,), (third,)),  # one of them stays away
            dealt(job, (first, second), (third,)),
        ):
            for partition in (first, second, third):
                writer.write_many(partition, numbered(range(50)), batch=10)
            stage.conductor.replan(plan)
            stage.wait("the plan to be followed", partial(is_leased_as_dealt, plan))
            planned = {str(partition) for task in plan.tasks for partition in task}
            ends = flow.ends({topic: 2, later: 1})
            stage.wait_until_caught_up({key: ends[key] for key in planned})
        assert [event.kind for event in stage.snapshot.events] == []
        stage.drain()
        flow.assert_mirrored({topic: 2, later: 1}, fences=0, stage=stage)
