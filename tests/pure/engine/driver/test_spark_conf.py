"""Spark settings: the operator's win, the master stays as it is, no secret is among them."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.worker_util import check_python_version

from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.engine.driver.fast_start_spark_home import SparkHome
from sparkmirror.engine.driver.spark_conf import (
    CONTROL_PORT_KEY,
    CONTROL_PROTOCOL_KEY,
    DRIVER_JAVA_OPTIONS,
    SPARE_CORES,
    DriverEnvironment,
    build_spark_conf,
    control_port,
    control_protocol,
    effective_master,
    is_local_master,
    no_slot_text,
    query_settings,
    reuses_python_workers,
    slots_for_tasks,
    spark_environment,
)
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import ConfigError

SPEC = DriverSpec(jobs=(job_without_partitions(3),), receipts="/r", log="/l")
ENVIRONMENT = DriverEnvironment(directory=Path("/private"))
HOME = SparkHome(Path("/cache/home"), Path("/cache/classes.jsa"))


def spec_on(master: str) -> DriverSpec:
    return replace(SPEC, master=master)


def test_the_default_master_has_a_core_for_each_slot_spare_cores_and_retries() -> None:
    cores = os.cpu_count() or 1
    assert effective_master(SPEC) == f"local[{cores + SPARE_CORES},4]"
    assert slots_for_tasks(SPEC, 99) == cores


@pytest.mark.parametrize(("cores", "slots"), [(0, 1), (1, 1), (2, 1), (5, 4)])
def test_on_a_given_master_one_core_is_left_for_short_jobs(cores: int, slots: int) -> None:
    assert slots_for_tasks(spec_on("spark://a:7077"), cores) == slots


@pytest.mark.parametrize(
    "master", ["local[2]", "local[*]", "spark://a:7077,b:7077", "k8s://https://x", "yarn"]
)
def test_a_master_stays_as_it_is(master: str) -> None:
    assert build_spark_conf(spec_on(master), ENVIRONMENT)["spark.master"] == master
    conf = replace(SPEC, conf={"spark.master": master})
    assert build_spark_conf(conf, ENVIRONMENT)["spark.master"] == master


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local[2,4]", True), ("local-cluster[2,1,1]", False)],
)
def test_only_masters_inside_the_driver_are_local(master: str, local: bool) -> None:
    assert is_local_master(master) is local


def test_settings_of_the_operator_win() -> None:
    conf = {"spark.driver.memory": "4g", "spark.ui.enabled": "true", "spark.speculation": "true"}
    built = build_spark_conf(replace(SPEC, conf=conf), ENVIRONMENT)
    assert {key: built[key] for key in conf} == conf


def test_a_slot_of_a_cluster_evaluates_queries_with_the_settings_of_the_driver() -> None:
    conf = {"spark.sql.ansi.enabled": "false", "spark.driver.memory": "1g"}
    others = {"spark.executor.cores": "2", "spark.sql.warehouse.dir": "hdfs:///w"}
    assert query_settings(replace(SPEC, conf={**conf, **others})) == conf


def test_executors_get_the_variables_of_the_driver_unless_the_operator_sets_them() -> None:
    environment = replace(ENVIRONMENT, executor_variables={"A": "driver", "B": "driver"})
    built = build_spark_conf(replace(SPEC, conf={"spark.executorEnv.B": "own"}), environment)
    assert built["spark.executorEnv.A"] == "driver"
    assert built["spark.executorEnv.B"] == "own"


def test_the_operator_can_set_the_control_port() -> None:
    assert control_port(SPEC) == 0
    assert control_port(replace(SPEC, conf={CONTROL_PORT_KEY: "7079"})) == 7079
    for wrong in ("x", "-1", "65536"):
        with pytest.raises(ConfigError, match=f"control.port {wrong} is not a port"):
            control_port(replace(SPEC, conf={CONTROL_PORT_KEY: wrong}))


@pytest.mark.parametrize(
    ("given", "has_tls_psk", "expected"),
    [
        ("", True, ControlProtocol.TLS_PSK),
        ("", False, ControlProtocol.ENCRYPTED_FRAMES),
        ("tls-psk", True, ControlProtocol.TLS_PSK),
        ("encrypted-frames", True, ControlProtocol.ENCRYPTED_FRAMES),
        (" encrypted-frames ", False, ControlProtocol.ENCRYPTED_FRAMES),
    ],
)
@pytest.mark.parametrize("master", ["", "local[2]", "spark://here:7077", "yarn"])
def test_the_control_server_speaks_tls_where_the_python_has_it_unless_the_operator_says_otherwise(
    given: str, has_tls_psk: bool, expected: ControlProtocol, master: str
) -> None:
    spec = replace(SPEC, master=master, conf={CONTROL_PROTOCOL_KEY: given} if given else {})
    assert control_protocol(spec, has_tls_psk=has_tls_psk) is expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [("tls-psk", "needs Python 3.13"), ("tls", "is not one of encrypted-frames, tls-psk")],
)
def test_a_control_protocol_that_cannot_be_spoken_is_refused(given: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"{CONTROL_PROTOCOL_KEY} {given} {reason}"):
        control_protocol(replace(SPEC, conf={CONTROL_PROTOCOL_KEY: given}), has_tls_psk=False)


def test_spark_refuses_workers_and_planners_of_another_python_version_than_the_driver() -> None:
    """So the driver's Python tells whether theirs have TLS with a pre-shared key."""
    check_python_version(f"{sys.version_info.major}.{sys.version_info.minor}")
    with pytest.raises(PySparkRuntimeError, match="PYTHON_VERSION_MISMATCH"):
        check_python_version("3.10")


def test_java_options_of_the_operator_come_last_and_win() -> None:
    conf = {DRIVER_JAVA_OPTIONS: "-XX:+UseG1GC"}
    built = build_spark_conf(replace(SPEC, conf=conf), ENVIRONMENT)[DRIVER_JAVA_OPTIONS]
    assert built.endswith(" -XX:+UseG1GC")


def test_a_class_archive_is_used_if_it_exists() -> None:
    without = replace(ENVIRONMENT, spark_home=HOME)
    assert "SharedArchiveFile" not in build_spark_conf(SPEC, without)[DRIVER_JAVA_OPTIONS]
    with_archive = build_spark_conf(SPEC, replace(without, has_cds_archive=True))[
        DRIVER_JAVA_OPTIONS
    ]
    assert '"-XX:SharedArchiveFile=/cache/classes.jsa"' in with_archive


def test_the_jvm_begins_with_a_small_heap_and_does_not_relocate_its_class_archive() -> None:
    options = build_spark_conf(SPEC, ENVIRONMENT)[DRIVER_JAVA_OPTIONS].split()
    assert options.index("-XX:+UnlockDiagnosticVMOptions") < options.index(
        "-XX:ArchiveRelocationMode=0"
    )
    assert {"-Xms48m", "-Xmn16m", "-XX:MaxMetaspaceSize=256m"} <= set(options)


@pytest.mark.parametrize(("given", "expected"), [({}, "2"), ({"MALLOC_ARENA_MAX": "8"}, "8")])
def test_threads_share_two_malloc_arenas_unless_the_operator_says_otherwise(
    given: dict[str, str], expected: str
) -> None:
    assert spark_environment(SPEC, ENVIRONMENT, given)["MALLOC_ARENA_MAX"] == expected


def test_no_client_property_is_among_the_settings() -> None:
    job = job_without_partitions(1)
    secret = {"sasl.password": "hidden", "bootstrap.servers": "x:1"}
    job = replace(job, settings=replace(job.settings, source=secret, target=secret))
    spec = replace(SPEC, jobs=(job,))
    built = build_spark_conf(spec, ENVIRONMENT) | spark_environment(spec, ENVIRONMENT, {})
    assert "hidden" not in str(built)


def test_on_this_computer_workers_are_this_python_on_loopback() -> None:
    environment = replace(ENVIRONMENT, spark_home=HOME)
    built = spark_environment(SPEC, environment, {"PYSPARK_PYTHON": "/other/python"})
    assert built["PYSPARK_PYTHON"] == sys.executable
    assert built["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert built["SPARK_HOME"] == "/cache/home"


def test_on_a_cluster_python_and_addresses_are_the_operators() -> None:
    built = spark_environment(
        spec_on("spark://a:7077"), ENVIRONMENT, {"PYSPARK_PYTHON": "/other/python"}
    )
    assert built["PYSPARK_PYTHON"] == "/other/python"
    assert "SPARK_LOCAL_IP" not in built
    assert "SPARK_HOME" not in built
    assert "spark.driver.host" not in build_spark_conf(spec_on("spark://a:7077"), ENVIRONMENT)
    named = replace(spec_on("yarn"), conf={"spark.pyspark.python": "./env/bin/python"})
    assert spark_environment(named, ENVIRONMENT, {})["PYSPARK_PYTHON"] == "./env/bin/python"


def test_a_long_temporary_path_is_not_used_for_sockets() -> None:
    deep = DriverEnvironment(directory=Path("/" + "x" * 60))
    assert "java.io.tmpdir" in build_spark_conf(SPEC, ENVIRONMENT)[DRIVER_JAVA_OPTIONS]
    assert "java.io.tmpdir" not in build_spark_conf(SPEC, deep)[DRIVER_JAVA_OPTIONS]


@pytest.mark.parametrize(
    ("conf", "reuses"),
    [
        ({}, True),
        ({"spark.python.worker.reuse": "true", "spark.python.use.daemon": "true"}, True),
        ({"spark.python.worker.reuse": "False"}, False),
        ({"spark.python.use.daemon": " false"}, False),
        ({"spark.python.factory.idleWorkerMaxPoolSize": "1"}, False),
    ],
    ids=["default", "explicit", "no-reuse", "no-daemon", "limited"],
)
def test_slots_are_kept_only_if_spark_keeps_its_python_processes(
    conf: dict[str, str], reuses: bool
) -> None:
    assert reuses_python_workers(lambda key: conf.get(key, "")) is reuses


def test_without_any_slot_the_warning_allows_for_a_slow_start() -> None:
    assert no_slot_text(3).startswith("none of 3 tasks have a slot in Spark yet; if that lasts")
