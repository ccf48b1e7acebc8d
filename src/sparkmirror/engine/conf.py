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

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.home import Home
from sparkmirror.errors import ConfigError

LOOPBACK = "127.0.0.1"
SPARE_SLOTS = 64
ATTEMPTS = 4
"""How often a task may fail before its query does; `local[n]` alone would mean once."""
CONTROL_PORT = "spark.sparkmirror.control.port"
"""Where the driver listens for its tasks; any free port if it is not set."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto"
"""The driver's JVM plans one small job every few minutes: starting quickly is all it must do."""

LARGEST_PORT = 65535
LONGEST_SOCKET_DIRECTORY = 60
"""Spark's workers have sockets among the temporary files, and their names have a limit."""

_LOCAL = re.compile(r"local(\[.*\])?")
_LOCAL_SLOTS = re.compile(r"local\[(\d+)(,\s*\d+)?\]")

ALWAYS = {
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
class Surroundings:
    """What the settings depend on besides the assignment."""

    directory: Path
    """The driver's own, gone when it is."""
    home: Home | None = None
    has_archive: bool = False


def master_of(assignment: Assignment) -> str:
    """The master as the user gave it, or this computer: a slot for each task, some to spare.

    Slots cost nothing here as long as nobody is in them, and their number stays for as long as
    Spark runs, while tasks may become more.
    """
    given = assignment.master or assignment.conf.get("spark.master", "")
    return given or f"local[{len(assignment.job.tasks) + SPARE_SLOTS},{ATTEMPTS}]"


def is_local(master: str) -> bool:
    """Whether tasks run inside the driver's own JVM."""
    return bool(_LOCAL.fullmatch(master))


def too_few_slots(assignment: Assignment) -> str:
    """Say so if the master's own name tells that not all tasks can run at once."""
    named = _LOCAL_SLOTS.fullmatch(master_of(assignment))
    slots = int(named[1]) if named else len(assignment.job.tasks)
    return lacking(len(assignment.job.tasks), slots) if slots < len(assignment.job.tasks) else ""


def lacking(tasks: int, slots: int) -> str:
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


def control_port(assignment: Assignment) -> int:
    """The port of the control channel; 0 means any."""
    given = assignment.conf.get(CONTROL_PORT, "0").strip()
    if not given.isdecimal() or int(given) > LARGEST_PORT:
        raise ConfigError.of(CONTROL_PORT, f"{CONTROL_PORT} {given} is no port")
    return int(given)


def settings(assignment: Assignment, around: Surroundings) -> dict[str, str]:
    """All of Spark's settings for a driver."""
    master = master_of(assignment)
    local = {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.python.daemon.module": "sparkmirror.engine.daemon",
    }
    return {
        **ALWAYS,
        "spark.app.name": f"sparkmirror {assignment.flow}",
        "spark.sql.warehouse.dir": (around.directory / "warehouse").as_uri(),
        **(local if is_local(master) else {}),
        **assignment.conf,
        "spark.master": master,
        JAVA_OPTIONS: " ".join(_java_options(around, assignment.conf.get(JAVA_OPTIONS, ""))),
    }


def environment(
    assignment: Assignment, around: Surroundings, given: Mapping[str, str]
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
        "SPARK_LAUNCHER_OPTS": f"{QUICK_JVM} {given.get('SPARK_LAUNCHER_OPTS', '')}".strip(),
    }
    if is_local(master_of(assignment)):
        variables["PYSPARK_PYTHON"] = sys.executable
        variables["SPARK_LOCAL_IP"] = LOOPBACK
        variables["SPARK_LOCAL_DIRS"] = str(around.directory)
        if around.home:
            variables["SPARK_HOME"] = str(around.home.path)
    return variables


def _java_options(around: Surroundings, given: str) -> list[str]:
    """Ours first: of two that contradict each other the JVM takes the last."""
    options = [QUICK_JVM]
    if len(str(around.directory)) <= LONGEST_SOCKET_DIRECTORY:
        options.append(f'"-Djava.io.tmpdir={around.directory}"')
    if around.home and around.has_archive:
        options.append(f'"-XX:SharedArchiveFile={around.home.archive}"')
    return [*options, given] if given else options
