"""Spark's settings: the user's win, the master is left alone, no secret is among them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.engine.driver.spark_conf import (
    CONTROL_PORT_KEY,
    DRIVER_JAVA_OPTIONS,
    DriverEnvironment,
    build_spark_conf,
    control_port,
    effective_master,
    is_local_master,
    slot_shortage_text,
    slot_shortage_warning,
    spark_environment,
)
from sparkmirror.engine.driver.spark_home import SparkHome
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import ConfigError

ASSIGNMENT = DriverSpec(job=job_without_partitions(3), receipts="/r", log="/l")
AROUND = DriverEnvironment(directory=Path("/private"))
HOME = SparkHome(Path("/cache/home"), Path("/cache/classes.jsa"))


def on(master: str) -> DriverSpec:
    return replace(ASSIGNMENT, master=master)


def test_without_a_master_each_task_has_a_slot_and_may_fail_and_one_is_spare() -> None:
    assert effective_master(ASSIGNMENT) == "local[67,4]"


@pytest.mark.parametrize(
    "master", ["local[2]", "local[*]", "spark://a:7077,b:7077", "k8s://https://x", "yarn"]
)
def test_a_master_is_taken_as_it_is(master: str) -> None:
    assert build_spark_conf(on(master), AROUND)["spark.master"] == master
    conf = replace(ASSIGNMENT, conf={"spark.master": master})
    assert build_spark_conf(conf, AROUND)["spark.master"] == master


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local[2,4]", True), ("local-cluster[2,1,1]", False)],
)
def test_only_masters_inside_the_driver_are_local(master: str, local: bool) -> None:
    assert is_local_master(master) is local


def test_what_the_user_sets_wins() -> None:
    conf = {"spark.driver.memory": "4g", "spark.ui.enabled": "true", "spark.speculation": "true"}
    made = build_spark_conf(replace(ASSIGNMENT, conf=conf), AROUND)
    assert {key: made[key] for key in conf} == conf


def test_the_control_channel_listens_where_the_user_says() -> None:
    assert control_port(ASSIGNMENT) == 0
    assert control_port(replace(ASSIGNMENT, conf={CONTROL_PORT_KEY: "7079"})) == 7079
    for wrong in ("x", "-1", "65536"):
        with pytest.raises(ConfigError, match=f"control.port {wrong} is not a port"):
            control_port(replace(ASSIGNMENT, conf={CONTROL_PORT_KEY: wrong}))


def test_java_options_of_the_user_come_last_so_that_they_win() -> None:
    conf = {DRIVER_JAVA_OPTIONS: "-XX:+UseG1GC"}
    made = build_spark_conf(replace(ASSIGNMENT, conf=conf), AROUND)[DRIVER_JAVA_OPTIONS]
    assert made.endswith(" -XX:+UseG1GC")


def test_a_class_archive_is_used_if_it_is_there() -> None:
    without = replace(AROUND, spark_home=HOME)
    assert "SharedArchiveFile" not in build_spark_conf(ASSIGNMENT, without)[DRIVER_JAVA_OPTIONS]
    there = build_spark_conf(ASSIGNMENT, replace(without, has_cds_archive=True))[
        DRIVER_JAVA_OPTIONS
    ]
    assert '"-XX:SharedArchiveFile=/cache/classes.jsa"' in there


def test_no_client_property_is_among_the_settings() -> None:
    job = job_without_partitions(1)
    secret = {"sasl.password": "hidden", "bootstrap.servers": "x:1"}
    job = replace(job, settings=replace(job.settings, source=secret, target=secret))
    assignment = replace(ASSIGNMENT, job=job)
    made = build_spark_conf(assignment, AROUND) | spark_environment(assignment, AROUND, {})
    assert "hidden" not in str(made)


def test_on_this_computer_workers_are_this_python_on_loopback() -> None:
    around = replace(AROUND, spark_home=HOME)
    made = spark_environment(ASSIGNMENT, around, {"PYSPARK_PYTHON": "/other/python"})
    assert made["PYSPARK_PYTHON"] == sys.executable
    assert made["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert made["SPARK_HOME"] == "/cache/home"


def test_on_a_cluster_python_and_addresses_are_the_users() -> None:
    made = spark_environment(on("spark://a:7077"), AROUND, {"PYSPARK_PYTHON": "/other/python"})
    assert made["PYSPARK_PYTHON"] == "/other/python"
    assert "SPARK_LOCAL_IP" not in made
    assert "SPARK_HOME" not in made
    assert "spark.driver.host" not in build_spark_conf(on("spark://a:7077"), AROUND)
    named = replace(on("yarn"), conf={"spark.pyspark.python": "./env/bin/python"})
    assert spark_environment(named, AROUND, {})["PYSPARK_PYTHON"] == "./env/bin/python"


@pytest.mark.parametrize("master", ["local[2]", "local[2,4]"])
def test_too_few_slots_are_said_at_once_where_the_master_tells(master: str) -> None:
    assert slot_shortage_warning(on(master)).startswith("only 2 of 3 tasks have a slot")


@pytest.mark.parametrize("master", ["", "local[3]", "local[*]", "spark://a:7077"])
def test_enough_or_unknown_slots_are_no_reason_to_complain(master: str) -> None:
    assert slot_shortage_warning(on(master)) == ""


def test_sockets_of_workers_stay_within_the_limit_of_their_names() -> None:
    deep = DriverEnvironment(directory=Path("/" + "x" * 60))
    assert "java.io.tmpdir" in build_spark_conf(ASSIGNMENT, AROUND)[DRIVER_JAVA_OPTIONS]
    assert "java.io.tmpdir" not in build_spark_conf(ASSIGNMENT, deep)[DRIVER_JAVA_OPTIONS]


def test_a_spark_without_any_task_may_only_be_slow() -> None:
    assert slot_shortage_text(3, 0).startswith(
        "none of 3 tasks have a slot in Spark yet; if that lasts"
    )
