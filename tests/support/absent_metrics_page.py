"""Prints the list of absent metrics into docs/operate.md: `python -m` it; `make docs` calls it."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.metrics.names.absent_metrics import ABSENT_METRICS, AbsentMetrics

PAGE = Path(__file__).parents[2] / "docs" / "operate.md"
FIRST_ROW = "| MBean | attributes | why |\n|---|---|---|\n"


def absent_table() -> str:
    """Return the table, with a line for each type and reason."""
    found: dict[tuple[str, str], list[AbsentMetrics]] = {}
    for one in ABSENT_METRICS:
        found.setdefault((f"{one.bean.domain}:type={one.bean.type}", one.reason), []).append(one)
    return FIRST_ROW + "".join(
        f"| `{bean}` | {_attributes(entries)} | {reason} |\n"
        for (bean, reason), entries in found.items()
    )


def with_absent_table(page: str) -> str:
    """Return the page with the table of today."""
    before, _, rest = page.partition(FIRST_ROW)
    rows, blank, after = rest.partition("\n\n")
    assert rows and blank, f"{PAGE.name} has no table of absent metrics"
    return f"{before}{absent_table()}\n{after}"


def _attributes(entries: list[AbsentMetrics]) -> str:
    names = [name for one in entries for name in one.attributes]
    return ", ".join(f"`{name}`" for name in names) or "all"


if __name__ == "__main__":
    PAGE.write_text(with_absent_table(PAGE.read_text("utf-8")), "utf-8")
