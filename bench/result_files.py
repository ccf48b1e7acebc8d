"""The result files of benchmarks: all figures, and the facts about the computer.

They hold no host names and no paths, because results are published.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.bench_run import BenchRun
from bench.scale import Scale
from sparkmirror.errors import LabError
from sparkmirror.java.java_runtime import find_java
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION

RESULTS_DIRECTORY = Path(__file__).parent / "results"
_PACKAGES = ("sparkmirror", "pyspark", "kafka-python", "confluent-kafka", "cramjam", "awscrt")

_NUMBERS = re.compile(r"\[[-\d\s.,e\[\]]*\]")
"""A list of numbers, or of lists of numbers, which is written on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """The result file of one benchmark. Every run writes the whole file again."""

    path: Path
    facts: dict[str, Any]

    @classmethod
    def new(cls, name: str, scale: Scale, directory: Path = RESULTS_DIRECTORY) -> ResultFile:
        """Return a file whose name begins with the current time. Writes nothing yet."""
        now = datetime.datetime.now(datetime.UTC)
        directory.mkdir(parents=True, exist_ok=True)
        return cls(
            path=directory / f"{now:%Y-%m-%d-%H%M}-{name}.json",
            facts={
                "begun": now.isoformat(timespec="seconds"),
                "scale": {field: getattr(scale, field) for field in scale.__slots__},
                "machine": machine_facts(),
            },
        )

    def write(self, runs: Sequence[BenchRun]) -> None:
        """Write all runs so far, by one rename."""
        value = {**self.facts, "runs": [run.to_json() for run in runs]}
        text = _NUMBERS.sub(_join_lines, json.dumps(value, indent=1))
        new_file = self.path.with_suffix(".new")
        new_file.write_text(text + "\n", encoding="utf-8")
        new_file.rename(self.path)


def _join_lines(numbers: re.Match[str]) -> str:
    return re.sub(r"\s+", " ", numbers[0]).replace("[ ", "[").replace(" ]", "]")


def read_results(path: Path) -> tuple[dict[str, Any], list[BenchRun]]:
    """Return the facts and the runs of a file."""
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value, [BenchRun.from_json(run) for run in value.pop("runs")]


def machine_facts() -> dict[str, Any]:
    """Return the facts on which the figures depend: hardware and software versions."""
    return {
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        "kafka": DEFAULT_VERSION,
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _java() -> str:
    try:
        return find_java().version
    except LabError:
        return "none"
