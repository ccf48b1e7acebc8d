"""Writes the table and the chart of docs/benchmarks.md from result files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.bench_run import BenchRun
from bench.benchmark import render_chart
from bench.report_rows import build_rows
from bench.report_tables import markdown_tables

DOCS = Path(__file__).parents[1] / "docs"
_TABLE = re.compile(r"(<!-- table -->\n).*?(<!-- end of table -->)", re.DOTALL)


def with_table(text: str, table: str) -> str:
    """Return the text with the table between its two table comments."""
    assert _TABLE.search(text), "the document has no place for a table"
    return _TABLE.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", text)


def write_document(runs: Sequence[BenchRun], docs: Path = DOCS) -> None:
    """Write the table into benchmarks.md, and the chart to benchmarks.svg."""
    page = docs / "benchmarks.md"
    text = with_table(page.read_text("utf-8"), markdown_tables(build_rows(runs)))
    page.write_text(text, encoding="utf-8")
    (docs / "benchmarks.svg").write_text(render_chart(runs), encoding="utf-8")
