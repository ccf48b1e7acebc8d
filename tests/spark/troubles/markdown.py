"""Prints the table of troubles into docs/operate.md: `python -m tests.spark.troubles.markdown`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.spark.troubles.trouble import CLUSTER_TEST, FAILED, HEALTHY, TEST, Trouble
from tests.spark.troubles.trouble_table import TROUBLES

PAGE = Path(__file__).parents[3] / "docs" / "operate.md"
FIRST_ROW = (
    "| trouble | remark or event | where | seen, gone within | do |\n|---|---|---|---|---|\n"
)
PROOF_BEGINNING = "A test provokes the troubles on real clusters"


def trouble_table() -> str:
    """Return the table, with a line per trouble."""
    return FIRST_ROW + "".join(_row(trouble) for trouble in TROUBLES)


def proof_text() -> str:
    """Return the paragraph below the table: what proves the rows."""
    tests = (TEST, CLUSTER_TEST)
    others = [trouble for trouble in TROUBLES if trouble.proof not in tests]
    listed = [f'"{trouble.title}" by `{trouble.proof.rpartition("::")[2]}`' for trouble in others]
    return (
        f"{PROOF_BEGINNING}, compares every surface, and waits until nothing is left of it. Only"
        " what compaction leaves in a config\ntopic is written there by the test, and the wrong"
        " clock is that of the Python processes of worker and driver. Without a worker, at the"
        f" level of a driver, are\nproven: {', '.join(listed) or 'none'}.\n"
    )


def with_table(page: str) -> str:
    """Return the page with the table of today and the paragraph below it."""
    before, _, rest = page.partition(FIRST_ROW)
    rows, blank, after = rest.partition("\n\n")
    proof, end, after = after.partition("\n\n")
    assert rows and blank and end, f"{PAGE.name} has no table of troubles"
    assert proof.startswith(PROOF_BEGINNING), f"{PAGE.name} does not say what proves the table"
    return f"{before}{trouble_table()}\n{proof_text()}\n{after}"


def _row(trouble: Trouble) -> str:
    cells = [
        trouble.title,
        "; ".join(_texts(trouble)) or "nothing: nothing depends on it",
        "; ".join(_places(trouble)),
        f"{trouble.appears_within_s} s, {trouble.disappears_within_s} s",
        trouble.advice,
    ]
    return f"| {' | '.join(cells)} |\n"


def _texts(trouble: Trouble) -> Iterator[str]:
    """Yield the remark and the event; a line of the log if there is neither."""
    if trouble.remark:
        yield f"*{trouble.remark}*"
    if trouble.event:
        yield f"event `{trouble.event}`"
    if trouble.log and not (trouble.remark or trouble.event):
        yield f"*{trouble.log}*"


def _places(trouble: Trouble) -> Iterator[str]:
    """Yield the surfaces that have the remark."""
    parts = [
        f"connector {FAILED}" if trouble.connector == FAILED else "connector",
        "task",
        "partition",
    ]
    are_shown = [
        trouble.on_connector,
        trouble.on_task and bool(trouble.task),
        trouble.on_partition and bool(trouble.partition),
    ]
    named = [part for part, is_shown in zip(parts, are_shown, strict=True) if is_shown]
    if trouble.remark and named:
        yield ", ".join(named)
    if trouble.health != HEALTHY:
        yield f"`/health` {trouble.health}"
    if trouble.event:
        yield "`/events`, log"
    elif trouble.log:
        yield "log"
    if trouble.remark and trouble.partition and (lag := _lag(trouble)):
        yield lag


def _lag(trouble: Trouble) -> str:
    """Return what the lag is while the trouble lasts; empty if it may be 0."""
    if trouble.knows_lag is False:
        return "lag unknown"
    if not trouble.least_lag:
        return ""
    return "lag above 0" if trouble.knows_lag else "lag unknown or above 0"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
