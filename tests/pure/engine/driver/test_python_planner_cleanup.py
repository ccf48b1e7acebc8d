"""Only the planning daemons of a JVM are ended, not its tasks and not those of another JVM."""

from __future__ import annotations

import os

from sparkmirror.engine.driver.python_planner_cleanup import (
    SystemProcess,
    planning_daemons,
    system_processes,
)

JVM = 10


def test_the_planning_daemons_are_the_children_of_the_jvm_with_a_planning_module() -> None:
    processes = [
        SystemProcess(JVM, 1, ("java", "org.apache.spark.deploy.SparkSubmit")),
        SystemProcess(
            11, JVM, ("python", "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source")
        ),
        SystemProcess(
            12, 11, ("python", "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source")
        ),
        SystemProcess(
            13, JVM, ("python", "-m", "sparkmirror.engine.spark.daemon", "pyspark.worker")
        ),
        SystemProcess(
            14, JVM, ("python", "-m", "pyspark.sql.streaming.python_streaming_source_runner")
        ),
        SystemProcess(
            21, 20, ("python", "-m", "pyspark.daemon", "pyspark.sql.worker.plan_data_source_read")
        ),
    ]
    assert planning_daemons(processes, JVM) == [11]


def test_this_process_is_among_the_processes_of_the_computer() -> None:
    [own] = [process for process in system_processes() if process.pid == os.getpid()]
    assert own.parent == os.getppid()
    assert "python" in own.arguments[0]
