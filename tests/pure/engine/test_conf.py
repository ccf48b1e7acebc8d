"""Spark's settings: the user's win, the master is left alone, no secret is among them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conf import (
    CONTROL_PORT,
    JAVA_OPTIONS,
    Surroundings,
    control_port,
    environment,
    is_local,
    lacking,
    master_of,
    settings,
    too_few_slots,
)
from sparkmirror.engine.home import Home
from sparkmirror.engine.rehearsal import rehearsed_job
from sparkmirror.errors import ConfigError

ASSIGNMENT = Assignment(job=rehearsed_job(3), receipts="/r", log="/l")
AROUND = Surroundings(directory=Path("/private"))
HOME = Home(Path("/cache/home"), Path("/cache/classes.jsa"))


def on(master: str) -> Assignment:
    return replace(ASSIGNMENT, master=master)


def test_without_a_master_each_task_has_a_slot_and_may_fail_and_one_is_spare() -> None:
    assert master_of(ASSIGNMENT) == "local[67,4]"


@pytest.mark.parametrize(
    "master", ["local[2]", "local[*]", "spark://a:7077,b:7077", "k8s://https://x", "yarn"]
)
def test_a_master_is_taken_as_it_is(master: str) -> None:
    assert settings(on(master), AROUND)["spark.master"] == master
    conf = replace(ASSIGNMENT, conf={"spark.master": master})
    assert settings(conf, AROUND)["spark.master"] == master


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local[2,4]", True), ("local-cluster[2,1,1]", False)],
)
def test_only_masters_inside_the_driver_are_local(master: str, local: bool) -> None:
    assert is_local(master) is local


def test_what_the_user_sets_wins() -> None:
    conf = {"spark.driver.memory": "4g", "spark.ui.enabled": "true", "spark.speculation": "true"}
    made = settings(replace(ASSIGNMENT, conf=conf), AROUND)
    assert {key: made[key] for key in conf} == conf


def test_the_control_channel_listens_where_the_user_says() -> None:
    assert control_port(ASSIGNMENT) == 0
    assert control_port(replace(ASSIGNMENT, conf={CONTROL_PORT: "7079"})) == 7079
    for wrong in ("x", "-1", "65536"):
        with pytest.raises(ConfigError, match=f"control.port {wrong} is no port"):
            control_port(replace(ASSIGNMENT, conf={CONTROL_PORT: wrong}))


def test_java_options_of_the_user_come_last_so_that_they_win() -> None:
    conf = {JAVA_OPTIONS: "-XX:+UseG1GC"}
    made = settings(replace(ASSIGNMENT, conf=conf), AROUND)[JAVA_OPTIONS]
    assert made.endswith(" -XX:+UseG1GC")


def test_a_class_archive_is_used_if_it_is_there() -> None:
    without = replace(AROUND, home=HOME)
    assert "SharedArchiveFile" not in settings(ASSIGNMENT, without)[JAVA_OPTIONS]
    there = settings(ASSIGNMENT, replace(without, has_archive=True))[JAVA_OPTIONS]
    assert '"-XX:SharedArchiveFile=/cache/classes.jsa"' in there


def test_no_client_property_is_among_the_settings() -> None:
    job = rehearsed_job(1)
    secret = {"sasl.password": "hidden", "bootstrap.servers": "x:1"}
    job = replace(job, settings=replace(job.settings, source=secret, target=secret))
    assignment = replace(ASSIGNMENT, job=job)
    made = settings(assignment, AROUND) | environment(assignment, AROUND, {})
    assert "hidden" not in str(made)


def test_on_this_computer_workers_are_this_python_on_loopback() -> None:
    around = replace(AROUND, home=HOME)
    made = environment(ASSIGNMENT, around, {"PYSPARK_PYTHON": "/other/python"})
    assert made["PYSPARK_PYTHON"] == sys.executable
    assert made["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert made["SPARK_HOME"] == "/cache/home"


def test_on_a_cluster_python_and_addresses_are_the_users() -> None:
    made = environment(on("spark://a:7077"), AROUND, {"PYSPARK_PYTHON": "/other/python"})
    assert made["PYSPARK_PYTHON"] == "/other/python"
    assert "SPARK_LOCAL_IP" not in made
    assert "SPARK_HOME" not in made
    assert "spark.driver.host" not in settings(on("spark://a:7077"), AROUND)
    named = replace(on("yarn"), conf={"spark.pyspark.python": "./env/bin/python"})
    assert environment(named, AROUND, {})["PYSPARK_PYTHON"] == "./env/bin/python"


@pytest.mark.parametrize("master", ["local[2]", "local[2,4]"])
def test_too_few_slots_are_said_at_once_where_the_master_tells(master: str) -> None:
    assert too_few_slots(on(master)).startswith("only 2 of 3 tasks have a slot")


@pytest.mark.parametrize("master", ["", "local[3]", "local[*]", "spark://a:7077"])
def test_enough_or_unknown_slots_are_no_reason_to_complain(master: str) -> None:
    assert too_few_slots(on(master)) == ""


def test_sockets_of_workers_stay_within_the_limit_of_their_names() -> None:
    deep = Surroundings(directory=Path("/" + "x" * 60))
    assert "java.io.tmpdir" in settings(ASSIGNMENT, AROUND)[JAVA_OPTIONS]
    assert "java.io.tmpdir" not in settings(ASSIGNMENT, deep)[JAVA_OPTIONS]


def test_a_spark_without_any_task_may_only_be_slow() -> None:
    assert lacking(3, 0).startswith("none of 3 tasks have a slot in Spark yet; if that lasts")
