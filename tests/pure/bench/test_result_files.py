"""Result files are read back completely, and contain nothing private."""

from __future__ import annotations

import getpass
import json
import platform
from pathlib import Path

from bench.bench_run import BenchRun
from bench.result_files import ResultFile, machine_facts, read_results
from bench.scale import QUICK
from bench.systems import System

RUN = BenchRun(
    bench="wan",
    workload="100-ms",
    who=System.SPARKMIRROR,
    round=2,
    figures={"records_per_s": 1234.5},
    load=(1.0, 2.0, 3.0),
    curve=((0.0, 1.0), (0.05, 1e-7)),
    failure="[1, 2]\n [3]",
)


def test_runs_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    results = ResultFile.new("try", QUICK, tmp_path)
    results.write([])
    results.write([RUN, RUN])
    facts, runs = read_results(results.path)
    assert runs == [RUN, RUN]
    assert facts["scale"]["rounds"] == 1
    assert [file.name for file in tmp_path.iterdir()] == [results.path.name]


def test_a_curve_is_written_on_one_line(tmp_path: Path) -> None:
    results = ResultFile.new("try", QUICK, tmp_path)
    results.write([RUN])
    assert "[[0.0, 1.0], [0.05, 1e-07]]" in results.path.read_text("utf-8")


def test_facts_about_the_computer_contain_nothing_private() -> None:
    facts = machine_facts()
    assert facts["cores"] >= 1
    assert facts["kafka"].startswith("4.")
    said = json.dumps(facts)
    assert platform.node() not in facts.values()
    assert str(Path.home()) not in said
    assert getpass.getuser() not in facts.values()
