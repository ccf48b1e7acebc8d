"""Whether a running job can go on with another plan. Pure."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.copy.job import CopyJob, may_copy_in_transactions


def is_same_but_for_tasks(old: CopyJob, new: CopyJob) -> bool:
    """Whether nothing but the partitions and how they start differs."""
    same = replace(
        old,
        tasks=new.tasks,
        task_count=new.task_count,
        remote_topics=new.remote_topics,
        policy_topics=new.policy_topics,
        untransformed_topics=new.untransformed_topics,
        start=new.start,
        on_loss=new.on_loss,
    )
    is_other_set = may_copy_in_transactions(new) and not is_same_task_set(old, new)
    return same == new and not is_other_set


def is_same_task_set(old: CopyJob, new: CopyJob) -> bool:
    """Whether two jobs belong to the same set of task configs; a worker may own other tasks of it.

    In exactly-once mode every other set begins with fencing, and every task starts again. So it is
    with a query, which may need transactions.
    """
    return old.task_count == new.task_count and all(
        old.tasks[task] == new.tasks[task] for task in old.tasks.keys() & new.tasks.keys()
    )
