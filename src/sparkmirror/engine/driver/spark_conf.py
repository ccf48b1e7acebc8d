"""Spark's settings: which ones a mirror needs, and what they are good for.

Pure: from an assignment to settings and environment variables. What the user sets wins; only the
options of the driver's JVM are added up.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.engine.driver.spark_home import SparkHome
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import ConfigError

LOOPBACK = "127.0.0.1"
SPARE_SLOTS = 64
TASK_MAX_FAILURES = 4
"""How often a task may fail before its query does; `local[n]` alone would mean once."""
CONTROL_PORT_KEY = "spark.sparkmirror.control.port"
"""Where the driver listens for its tasks; any free port if it is not set."""
DRIVER_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
FAST_START_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto"
"""The driver's JVM plans one small job every few minutes: starting quickly is all it must do."""

MAX_PORT = 65535
MAX_SOCKET_DIRECTORY_LENGTH = 60
"""Spark's workers have sockets among the temporary files, and their names have a limit."""

_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
_LOCAL_MASTER_SLOTS = re.compile(r"local\[(\d+)(,\s*\d+)?\]")

DEFAULT_CONF = {
    # Rows from workers come without the stalls that TCP has on small answers.
    "spark.python.unix.domain.socket.enabled": "true",
    # Two copies of a task would fight for the same partitions.
    "spark.speculation": "false",
    # Checkpoints lie on the driver's own disk, hold nothing but epoch numbers, and need no forks.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # One job per epoch, one row per partition: nothing to adapt, nothing to wait for.
    "spark.sql.adaptive.enabled": "false",
    "spark.locality.wait": "0",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.pollingDelay": "100ms",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnvironment:
    """What the settings depend on besides the assignment."""

    directory: Path
    """The driver's own, gone when it is."""
    spark_home: SparkHome | None = None
    has_cds_archive: bool = False


def effective_master(assignment: DriverSpec) -> str:
    """The master as the user gave it, or this computer: a slot for each task, some to spare.

    Slots cost nothing here as long as nobody is in them, and their number stays for as long as
    Spark runs, while tasks may become more.
    """
    given = assignment.master or assignment.conf.get("spark.master", "")
    return given or f"local[{len(assignment.job.tasks) + SPARE_SLOTS},{TASK_MAX_FAILURES}]"


def is_local_master(master: str) -> bool:
    """Whether tasks run inside the driver's own JVM."""
    return bool(_LOCAL_MASTER.fullmatch(master))


def slot_shortage_warning(assignment: DriverSpec) -> str:
    """Say so if the master's own name tells that not all tasks can run at once."""
    named = _LOCAL_MASTER_SLOTS.fullmatch(effective_master(assignment))
    slots = int(named[1]) if named else len(assignment.job.tasks)
    return (
        slot_shortage_text(len(assignment.job.tasks), slots)
        if slots < len(assignment.job.tasks)
        else ""
    )


def slot_shortage_text(tasks: int, slots: int) -> str:
    """The sentence for an operator whose Spark is too small, or slow to begin."""
    if not slots:
        return (
            f"none of {tasks} tasks have a slot in Spark yet; if that lasts, give Spark more cores"
            " or lower tasks.max"
        )
    return (
        f"only {slots} of {tasks} tasks have a slot in Spark, the partitions of the others are not"
        " copied; give Spark more cores or lower tasks.max"
    )


def control_port(assignment: DriverSpec) -> int:
    """The port of the control channel; 0 means any."""
    given = assignment.conf.get(CONTROL_PORT_KEY, "0").strip()
    if not given.isdecimal() or int(given) > MAX_PORT:
        raise ConfigError.of(CONTROL_PORT_KEY, f"{CONTROL_PORT_KEY} {given} is no port")
    return int(given)


def build_spark_conf(assignment: DriverSpec, around: DriverEnvironment) -> dict[str, str]:
    """All of Spark's settings for a driver."""
    master = effective_master(assignment)
    local = {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.python.daemon.module": "sparkmirror.engine.spark.daemon",
    }
    return {
        **DEFAULT_CONF,
        "spark.app.name": f"sparkmirror {assignment.flow}",
        "spark.sql.warehouse.dir": (around.directory / "warehouse").as_uri(),
        **(local if is_local_master(master) else {}),
        **assignment.conf,
        "spark.master": master,
        DRIVER_JAVA_OPTIONS: " ".join(
            _java_options(around, assignment.conf.get(DRIVER_JAVA_OPTIONS, ""))
        ),
    }


def spark_environment(
    assignment: DriverSpec, around: DriverEnvironment, given: Mapping[str, str]
) -> dict[str, str]:
    """The environment variables to add for everything that Spark starts on this computer."""
    variables = {
        # A worker must not import what happens to lie where the driver was started.
        "PYTHONSAFEPATH": "1",
        "PYSPARK_PYTHON": (
            assignment.conf.get("spark.pyspark.python")
            or given.get("PYSPARK_PYTHON")
            or sys.executable
        ),
        "SPARK_LAUNCHER_OPTS": (
            f"{FAST_START_JVM_OPTIONS} {given.get('SPARK_LAUNCHER_OPTS', '')}"
        ).strip(),
    }
    if is_local_master(effective_master(assignment)):
        variables["PYSPARK_PYTHON"] = sys.executable
        variables["SPARK_LOCAL_IP"] = LOOPBACK
        variables["SPARK_LOCAL_DIRS"] = str(around.directory)
        if around.spark_home:
            variables["SPARK_HOME"] = str(around.spark_home.path)
    return variables


def _java_options(around: DriverEnvironment, given: str) -> list[str]:
    """Ours first: of two that contradict each other the JVM takes the last."""
    options = [FAST_START_JVM_OPTIONS]
    if len(str(around.directory)) <= MAX_SOCKET_DIRECTORY_LENGTH:
        options.append(f'"-Djava.io.tmpdir={around.directory}"')
    if around.spark_home and around.has_cds_archive:
        options.append(f'"-XX:SharedArchiveFile={around.spark_home.cds_archive}"')
    return [*options, given] if given else options
