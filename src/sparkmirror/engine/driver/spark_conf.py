"""The Spark settings of a driver, with the reason for each.

Pure functions from a driver spec to settings and environment variables. The operator's settings
win; only the options of the driver's JVM are added to ours.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.copy.control.handshake import ControlProtocol, preferred_protocol
from sparkmirror.engine.driver.fast_start_spark_home import SparkHome
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import ConfigError

LOOPBACK = "127.0.0.1"
SPARE_CORES = 2
"""Cores of a local master for short jobs of the driver, beside those for slots."""
TASK_MAX_FAILURES = 4
"""How often a slot may fail before its epoch fails; `local[n]` alone would mean once."""
CONTROL_PORT_KEY = "spark.sparkmirror.control.port"
"""The port of the control server; any free port if it is not set."""
CONTROL_PROTOCOL_KEY = "spark.sparkmirror.control.protocol"
"""A value of `ControlProtocol`; the best one that the driver's Python has if it is not set."""
DRIVER_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
WAREHOUSE = "spark.sql.warehouse.dir"
FAST_START_JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto"
    " -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
)
"""The driver's JVM plans one small job every few minutes: only its start must be quick. A class
archive that is not relocated starts sooner, and only its used pages are in memory."""
SMALL_MEMORY_JVM_OPTIONS = (
    "-Xms48m -Xmn16m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30 -XX:MaxMetaspaceSize=256m"
)
"""Without the first two the JVM touches a third of the heap before it collects for the first time.
With the next two it gives memory back after a full collection. Classes take 16 MB beside the class
archive."""

MAX_PORT = 65535
MAX_SOCKET_DIRECTORY_LENGTH = 60
"""Spark creates Unix sockets among the temporary files, and the system limits their paths."""

_LOCAL_MASTER = re.compile(r"local(\[.*\])?")

DEFAULT_CONF = {
    # Small answers of workers stall over TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Two copies of a task would take the same partitions from each other.
    "spark.speculation": "false",
    # Checkpoints are on the driver's disk and hold only epoch numbers. The default
    # managers would start a process for each file.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # An epoch is one job with one row per partition: there is nothing to adapt or to wait for.
    "spark.sql.adaptive.enabled": "false",
    # For one row, compiling generated code takes longer than interpreting the plan.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A change of epochs leaves megabytes behind; Spark itself collects them every 30 minutes.
    "spark.cleaner.periodicGC.interval": "10min",
    # No sink reads Spark's own figures, and their sources load many classes.
    "spark.metrics.executorMetricsSource.enabled": "false",
    "spark.metrics.staticSources.enabled": "false",
    "spark.locality.wait": "0",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    DRIVER_MEMORY: "512m",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnvironment:
    """What the settings depend on besides the spec."""

    directory: Path
    """The driver's temporary directory; the driver removes it at its end."""
    python: str = sys.executable
    """What a local Spark starts for its Python processes."""
    spark_home: SparkHome | None = None
    has_cds_archive: bool = False
    executor_variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for executors. No secrets: Spark shows them."""


def effective_master(spec: DriverSpec) -> str:
    """The master that the operator set, else `local` with a core for each slot and spare ones."""
    given = spec.master or spec.conf.get("spark.master", "")
    return given or f"local[{_cpu_count() + SPARE_CORES},{TASK_MAX_FAILURES}]"


def slots_for_tasks(spec: DriverSpec, cores: int) -> int:
    """How many of Spark's cores are for slots: on this computer, as many as it has processors.

    Elsewhere all but one: short jobs of the driver need a core, too.
    """
    is_default = not (spec.master or spec.conf.get("spark.master", ""))
    return _cpu_count() if is_default else max(cores - 1, 1)


def reuses_python_workers(conf_value: Callable[[str], str]) -> bool:
    """Whether Spark uses a Python process for one task after the other, as is its default.

    With a limit of idle processes Spark may end one right after its task, while others wait.
    """
    keys = ("spark.python.worker.reuse", "spark.python.use.daemon")
    has_limit = bool(conf_value("spark.python.factory.idleWorkerMaxPoolSize").strip())
    return not has_limit and not any(conf_value(key).strip().lower() == "false" for key in keys)


def _cpu_count() -> int:
    return os.cpu_count() or 1


def is_local_master(master: str) -> bool:
    """Whether tasks run on this computer, below the driver's JVM."""
    return bool(_LOCAL_MASTER.fullmatch(master))


def no_slot_text(tasks: int) -> str:
    """A sentence for the operator: Spark has no core for any slot."""
    return (
        f"none of {tasks} tasks have a slot in Spark yet; if that lasts, give Spark at least one"
        " free core"
    )


def control_port(spec: DriverSpec) -> int:
    """The port of the control server; 0 means any. Raises ConfigError."""
    given = spec.conf.get(CONTROL_PORT_KEY, "0").strip()
    if not given.isdecimal() or int(given) > MAX_PORT:
        raise ConfigError.of(CONTROL_PORT_KEY, f"{CONTROL_PORT_KEY} {given} is not a port")
    return int(given)


def control_protocol(spec: DriverSpec, *, has_tls_psk: bool) -> ControlProtocol:
    """The protocol of the control server. Raises ConfigError.

    TLS where the driver's Python has it. Spark refuses workers and planners whose minor version of
    Python is not the driver's, so theirs have it too. If one is built without it, its tasks fail
    with a sentence, and the operator sets the key.
    """
    given = spec.conf.get(CONTROL_PROTOCOL_KEY, "").strip()
    if not given:
        return preferred_protocol(has_tls_psk=has_tls_psk)
    if given not in list(ControlProtocol):
        raise ConfigError.of(
            CONTROL_PROTOCOL_KEY,
            f"{CONTROL_PROTOCOL_KEY} {given} is not one of {', '.join(ControlProtocol)}",
        )
    if given == ControlProtocol.TLS_PSK and not has_tls_psk:
        raise ConfigError.of(
            CONTROL_PROTOCOL_KEY,
            f"{CONTROL_PROTOCOL_KEY} {given} needs Python 3.13 with an OpenSSL that has it",
        )
    return ControlProtocol(given)


def build_spark_conf(spec: DriverSpec, environment: DriverEnvironment) -> dict[str, str]:
    """All Spark settings of a driver."""
    master = effective_master(spec)
    local = {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.python.daemon.module": "sparkmirror.engine.spark.daemon",
    }
    return {
        **DEFAULT_CONF,
        "spark.app.name": spec.name,
        WAREHOUSE: (environment.directory / "warehouse").as_uri(),
        **(local if is_local_master(master) else {}),
        **{
            f"spark.executorEnv.{name}": value
            for name, value in environment.executor_variables.items()
        },
        **spec.conf,
        "spark.master": master,
        DRIVER_JAVA_OPTIONS: " ".join(
            _java_options(environment, spec.conf.get(DRIVER_JAVA_OPTIONS, ""))
        ),
    }


def query_settings(spec: DriverSpec) -> dict[str, str]:
    """The operator's settings on which the evaluation of queries depends.

    A Spark that evaluates the queries of a slot of a cluster gets them, so that a record becomes
    there what it becomes in the driver.
    """
    return {
        key: value
        for key, value in spec.conf.items()
        if (key.startswith("spark.sql.") and key != WAREHOUSE) or key == DRIVER_MEMORY
    }


def spark_environment(
    spec: DriverSpec, environment: DriverEnvironment, given: Mapping[str, str]
) -> dict[str, str]:
    """The environment variables to add for the processes that Spark starts on this computer."""
    variables = {
        # A worker must not import modules from the driver's working directory.
        "PYTHONSAFEPATH": "1",
        "PYSPARK_PYTHON": (
            spec.conf.get("spark.pyspark.python") or given.get("PYSPARK_PYTHON") or sys.executable
        ),
        # A heap of its own for each of many threads costs memory; few of them allocate at once.
        "MALLOC_ARENA_MAX": given.get("MALLOC_ARENA_MAX", "2"),
        "SPARK_LAUNCHER_OPTS": (
            f"{FAST_START_JVM_OPTIONS} {given.get('SPARK_LAUNCHER_OPTS', '')}"
        ).strip(),
    }
    if is_local_master(effective_master(spec)):
        variables["PYSPARK_PYTHON"] = environment.python
        variables["SPARK_LOCAL_IP"] = LOOPBACK
        variables["SPARK_LOCAL_DIRS"] = str(environment.directory)
        if environment.spark_home:
            variables["SPARK_HOME"] = str(environment.spark_home.path)
    return variables


def _java_options(environment: DriverEnvironment, given: str) -> list[str]:
    """Ours first: the JVM takes the last of two options that contradict each other."""
    options = [FAST_START_JVM_OPTIONS, SMALL_MEMORY_JVM_OPTIONS]
    if len(str(environment.directory)) <= MAX_SOCKET_DIRECTORY_LENGTH:
        options.append(f'"-Djava.io.tmpdir={environment.directory}"')
    if environment.spark_home and environment.has_cds_archive:
        options.append(f'"-XX:SharedArchiveFile={environment.spark_home.cds_archive}"')
    return [*options, given] if given else options
