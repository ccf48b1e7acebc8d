"""Prepares jobs of source connectors whose tasks may come from another worker of the group.

The job starts without tasks, in the Spark application that the worker keeps ready: its conductor
connects to both clusters and reads the ledger. It fences and writes nothing before it has tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.job import CopyJob
from sparkmirror.worker.spark.spark_applications import SparkApplications
from sparkmirror.worker.spark.spark_settings import own_spark_conf


class SparkTaskPreparation:
    """A TaskPreparation."""

    def __init__(
        self,
        to_job: Callable[[TaskPlan], CopyJob],
        applications: SparkApplications,
        is_undivided: Callable[[Mapping[str, str | None]], bool],
    ) -> None:
        self._to_job = to_job
        self._applications = applications
        self._is_undivided = is_undivided
        self._lock = threading.Lock()
        self._job_names: dict[str, str] = {}
        """The names of jobs by connector; empty for one that is not prepared."""

    def prepare(self, plan: TaskPlan) -> None:
        """Start the job of a connector without tasks.

        Not of one whose tasks run in a Spark application of its own, or on a Spark cluster.
        """
        name = ""
        try:
            if not own_spark_conf(plan.config) and not self._is_undivided(plan.config):
                job = self._to_job(plan)
                self._applications.prepare_job(job)
                name = job.name
        finally:
            with self._lock:
                self._job_names[plan.connector] = name

    def is_ready(self, connector: str) -> bool:
        """Whether the job runs, or has a problem, or there is none to wait for."""
        with self._lock:
            name = self._job_names.get(connector)
        return name is not None and self._applications.is_prepared(name)

    def forget(self, connector: str) -> None:
        """End the job, unless tasks have come."""
        with self._lock:
            name = self._job_names.pop(connector, "")
        if name:
            self._applications.forget_prepared(name)
