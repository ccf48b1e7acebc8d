"""Connectors share one Spark application; one with Spark settings of its own has its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.worker.spark import spark_applications
from sparkmirror.worker.spark.spark_applications import SparkApplications
from sparkmirror.worker.spark.spark_settings import SparkSettings, own_spark_conf
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[4]


@pytest.fixture
def specs() -> list[DriverSpec]:
    """The specs of the applications that were started."""
    return []


@pytest.fixture
def applications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, specs: list[DriverSpec]
) -> Iterator[SparkApplications]:
    """Applications whose drivers run without Spark (see tests.support.spark.fake_driver)."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def create(spec: DriverSpec) -> DriverSupervisor:
        specs.append(spec)
        module = "tests.support.spark.fake_driver"
        return DriverSupervisor(spec, module=module, idle_timeout_s=0.1)

    settings = SparkSettings(
        log_directory=tmp_path / "logs",
        receipts=str(tmp_path / "receipts"),
        name="group",
        master="local[3]",
        conf={"spark.ui.enabled": "true"},
    )
    created = SparkApplications(settings, create=create)
    yield created
    created.close()


def job_of(connector: str) -> CopyJob:
    return replace(job_without_partitions(1), connector=connector)


def test_connectors_share_one_application_and_one_log(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    jobs = [applications.start_job(job_of(name), {}) for name in ("one", "two", "three")]
    for job in jobs:
        assert next(job.statuses()).job
    [spec] = specs
    assert Path(spec.log).name == "spark-application.log"
    assert (spec.name, spec.master, spec.conf) == (
        "sparkmirror group",
        "local[3]",
        {"spark.ui.enabled": "true"},
    )


def test_a_connector_with_spark_settings_of_its_own_has_its_own_application(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    conf = own_spark_conf({"spark.master": "local[9]", "spark.x": "1", "topics": "t"})
    applications.start_job(job_of("one"), {})
    applications.start_job(job_of("own"), conf)
    common, own = specs
    assert own.log != common.log
    assert "own" in Path(own.log).name
    assert (own.master, own.conf) == ("local[9]", {"spark.ui.enabled": "true", "spark.x": "1"})


def test_an_application_that_has_ended_is_followed_by_another(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    first = applications.start_job(job_of("one"), {})
    first.drain()
    assert first.wait(50)

    def starts_again() -> bool:
        again = applications.start_job(job_of("one"), {})
        again.stop()
        return len(specs) == 2

    wait_until(starts_again, "another application")


def test_the_common_application_runs_without_a_connector_while_it_is_kept_ready(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    assert not applications.is_ready()
    applications.keep_ready("g", 0)
    assert not specs, "there is nothing to be ready for"
    applications.keep_ready("g", 6)
    wait_until(applications.is_ready, "the application to be ready")
    job = applications.start_job(job_of("one"), {})
    job.drain()
    assert job.wait(50)
    applications.keep_ready("other", 2)
    applications.keep_ready("g", 0)
    assert applications.is_ready()
    assert len(specs) == 1

    applications.keep_ready("other", 0)
    wait_until(lambda: starts_another(applications, specs), "the application to end")


def test_an_application_that_cannot_start_delays_nothing(applications: SparkApplications) -> None:
    job = applications.start_job(job_of("refuses"), {})
    assert not list(job.statuses())[-1].snapshot.partitions
    wait_until(applications.is_ready, "the failure")
    applications.keep_ready("g", 2)
    assert applications.is_ready()


def test_spark_starts_while_a_connector_plans_and_ends_if_no_task_comes(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    applications.on_planning("own", {"spark.master": "local[9]"})
    assert not specs, "it needs another application"
    applications.on_planning("one", {"topics": ".*"})
    wait_until(applications.is_ready, "the application to be ready")
    applications.on_no_tasks("one")
    wait_until(lambda: starts_another(applications, specs), "the application to end")


def test_an_application_that_started_for_a_plan_ends_with_the_tasks(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    applications.on_planning("one", {"topics": ".*"})
    applications.start_job(job_of("one"), {}).stop()
    assert len(specs) == 1
    wait_until(lambda: starts_another(applications, specs), "the application to end")


def test_an_application_that_is_started_early_is_there_for_the_first_connector(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    applications.start_early()
    wait_until(applications.is_ready, "the application to be ready")
    applications.on_planning("one", {"topics": ".*"})
    applications.start_job(job_of("one"), {}).stop()
    assert len(specs) == 1
    wait_until(lambda: starts_another(applications, specs), "the application to end")


def test_an_application_that_is_started_early_ends_if_no_connector_comes(
    applications: SparkApplications, specs: list[DriverSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_applications, "EARLY_START_S", 0.0)
    applications.start_early()
    wait_until(lambda: starts_another(applications, specs), "the application to end")


def prepared_job(connector: str) -> CopyJob:
    return replace(job_of(connector), tasks={})


def test_tasks_start_in_the_job_that_was_prepared_for_them(
    applications: SparkApplications, specs: list[DriverSpec]
) -> None:
    applications.prepare_job(prepared_job("one"))
    assert not specs, "nothing is started only to prepare"
    applications.keep_ready("g", 1)
    wait_until(applications.is_ready, "the application to be ready")
    for _ in range(2):
        applications.prepare_job(prepared_job("one"))
    started = applications.start_job(job_of("one"), {})
    wait_until(lambda: started.status.problem == DriverAction.REPLAN, "the plan")
    assert started.status.tasks == 1
    applications.forget_prepared(started.job.name)
    assert not started.is_ending, "a job with tasks is not forgotten"


def test_a_prepared_job_with_other_settings_is_replaced(applications: SparkApplications) -> None:
    applications.keep_ready("g", 1)
    wait_until(applications.is_ready, "the application to be ready")
    applications.prepare_job(replace(prepared_job("one"), offsets_topic="another"))
    started = applications.start_job(job_of("one"), {})
    assert next(started.statuses()).problem != DriverAction.REPLAN


def test_a_prepared_job_whose_tasks_went_elsewhere_ends(applications: SparkApplications) -> None:
    applications.keep_ready("g", 1)
    wait_until(applications.is_ready, "the application to be ready")
    job = prepared_job("one")
    applications.prepare_job(job)
    prepared = applications._supervisors[""].job(job.name)
    applications.forget_prepared(job.name)
    assert prepared.wait(50)


def starts_another(applications: SparkApplications, specs: list[DriverSpec]) -> bool:
    """Whether the next job needs a new application: the first one has ended."""
    applications.start_job(job_of("next"), {}).stop()
    return len(specs) == 2
