"""Which tasks a conductor fences when it starts."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.fencing.transactional_id_fencing import fenceable_tasks
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import copy_job

JOB = copy_job((TopicPartition("t", 0),), (TopicPartition("t", 1),))
KNOWN = range(5)


def test_a_conductor_without_others_fences_every_task() -> None:
    assert fenceable_tasks(KNOWN, JOB) == set(KNOWN)


def test_a_shared_conductor_leaves_the_tasks_of_others_alone() -> None:
    shared = replace(JOB, is_shared=True, task_count=4, delivery=DeliveryMode.EXACTLY_ONCE)
    assert fenceable_tasks(KNOWN, shared) == {4}


def test_after_exactly_once_mode_a_shared_conductor_fences_its_own_tasks() -> None:
    shared = replace(JOB, is_shared=True, task_count=4)
    assert fenceable_tasks(KNOWN, shared) == {0, 1, 4}
