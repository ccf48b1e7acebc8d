"""The Spark for queries of a slot on a cluster: started once, asked once, never waited for long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sparkmirror.engine.driver.jvm_command import needs_spark_submit
from sparkmirror.engine.spark.query.executor_spark import (
    ExecutorSpark,
    SparkProcess,
    has_installed_spark,
    local_environ,
    start_spark_process,
)
from sparkmirror.engine.spark.query.view_request import ViewAnswer, ViewRequest
from sparkmirror.errors import DriverLost
from tests.support.waiting import wait_until

ANSWERS = """
import json, sys, time
for number, line in enumerate(sys.stdin.buffer):
    chain = json.loads(line)["chain"]
    if chain == "ends":
        sys.exit(3)
    if chain == "late":
        time.sleep(0.5)
    if chain == "hangs":
        time.sleep(3600)
    error = f"no view {number}" if chain == "refused" else ""
    print(json.dumps({"port": number + 1, "secret": "s", "error": error}), flush=True)
"""
LONG_S = 30.0


def request(chain: str) -> ViewRequest:
    return ViewRequest(settings={"spark.sql.a": "b"}, transforms={"sql": "SELECT"}, chain=chain)


class Starts:
    """Starts processes that answer by the script, and counts them."""

    def __init__(self) -> None:
        self.started: list[SparkProcess] = []

    def __call__(self) -> SparkProcess:
        self.started.append(SparkProcess([sys.executable, "-c", ANSWERS], {}))
        return self.started[-1]


@contextmanager
def starting() -> Iterator[Starts]:
    starts = Starts()
    try:
        yield starts
    finally:
        for process in starts.started:
            process.kill()
            wait_for_end(process)


def wait_for_end(process: SparkProcess) -> None:
    def has_ended() -> bool:
        return not process.is_running

    wait_until(has_ended, "the process to end")


def failure(act: Callable[[], object]) -> str:
    with pytest.raises(DriverLost) as raised:
        act()
    return str(raised.value)


def test_the_tasks_of_a_process_share_one_spark_and_ask_once_for_a_view() -> None:
    with starting() as starts:
        spark = ExecutorSpark(starts, wait_s=LONG_S)
        addresses: list[object] = []
        threads = [
            threading.Thread(target=lambda: addresses.append(spark.await_view(request("a"))))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert addresses == [(1, "s")] * 4
        spark.prepare(request("b"))
        assert spark.await_view(request("b")) == (2, "s")
        assert len(starts.started) == 1


def test_a_query_that_is_refused_is_asked_again() -> None:
    with starting() as starts:
        spark = ExecutorSpark(starts, wait_s=LONG_S)
        assert failure(lambda: spark.await_view(request("refused"))).endswith("failed: no view 0")
        assert failure(lambda: spark.await_view(request("refused"))).endswith("failed: no view 1")
        assert len(starts.started) == 1


def test_a_spark_that_starts_slowly_starts_on_for_the_next_attempt_of_the_task() -> None:
    with starting() as starts:
        spark = ExecutorSpark(starts, wait_s=0.01)
        assert "has not answered for 0 s; the next attempt waits" in failure(
            lambda: spark.await_view(request("late"))
        )
        patient = ExecutorSpark(lambda: starts.started[0], wait_s=LONG_S)
        assert patient.await_view(request("late")) == (1, "s")
        assert spark.await_view(request("late")) == (1, "s")
        assert len(starts.started) == 1


def test_a_spark_that_hangs_is_killed_and_started_again() -> None:
    with starting() as starts:
        spark = ExecutorSpark(starts, wait_s=0.01, timeout_s=0.0)
        assert "is started again" in failure(lambda: spark.await_view(request("hangs")))
        wait_for_end(starts.started[0])
        patient = ExecutorSpark(starts, wait_s=LONG_S)
        assert patient.await_view(request("a")) == (1, "s")


def test_a_spark_that_has_ended_is_started_again() -> None:
    with starting() as starts:
        spark = ExecutorSpark(starts, wait_s=LONG_S)
        assert spark.await_view(request("a")) == (1, "s")
        assert "it ended with code 3" in failure(lambda: spark.await_view(request("ends")))
        wait_for_end(starts.started[0])
        assert starts.started[0].ask(request("b")).answer.result().error
        assert spark.await_view(request("a")) == (1, "s")
        assert len(starts.started) == 2


def test_the_local_spark_has_nothing_of_the_cluster() -> None:
    environ = {
        "SPARK_HOME": "/opt/spark",
        "SPARK_CONF_DIR": "/etc/spark",
        "PYSPARK_PYTHON": "python3",
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
        "HADOOP_CONF_DIR": "/etc/hadoop",
        "PYTHONPATH": ":".join(
            [
                "/opt/spark/python/lib/pyspark.zip",
                "/opt/spark/jars/spark-core.jar",
                "/container/py4j-0.10-src.zip",
                "/my/rules",
                "/my/modules.zip",
            ]
        ),
        "SPARKMIRROR_PLUGIN_MODULES": "rules",
        "JAVA_HOME": "/java",
    }
    assert local_environ(environ) == {
        "PYTHONPATH": "/my/rules:/my/modules.zip",
        "SPARKMIRROR_PLUGIN_MODULES": "rules",
        "JAVA_HOME": "/java",
    }
    assert not needs_spark_submit((), local_environ(environ))
    assert local_environ({"PYTHONPATH": "/opt/spark/python/lib/pyspark.zip"}) == {}


def test_without_the_package_of_spark_the_task_fails_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert has_installed_spark()
    monkeypatch.setattr(sys, "path", ["/opt/spark/python/lib/pyspark.zip"])
    assert "install sparkmirror[spark] there" in failure(start_spark_process)


def test_request_and_answer_are_lines_that_show_no_secret() -> None:
    asked = request("a")
    assert ViewRequest.from_line(asked.to_line()) == asked
    answer = ViewAnswer(port=1, secret="hidden")
    assert ViewAnswer.from_line(answer.to_line()) == answer
    assert "hidden" not in repr(answer)
