"""The page for operators has every metric with its labels, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from sparkmirror.metrics.definition import PARTITION
from tests.support.absent_metrics_page import with_absent_table
from tests.support.metric_definitions import DEFINITIONS

PAGE = (Path(__file__).parents[3] / "docs" / "operate.md").read_text("utf-8")
ROW = re.compile(
    r"^\| (`(?:kafka|sparkmirror|process)_[^|]*) \| ?([^|]*?) ?\| [^|]* \|$", re.MULTILINE
)


def documented_labels() -> dict[str, set[str]]:
    """The labels of each metric. `the same` stands for those of the last row without it."""
    found: dict[str, set[str]] = {}
    base: set[str] = set()
    for names, labels in ROW.findall(PAGE):
        given = set(re.findall(r"`(\w+)`", labels))
        if labels.startswith("the same"):
            given |= base
        else:
            base = given
        for name in re.findall(r"`(\w+)`", names):
            assert name not in found, f"{name} is there twice"
            found[name] = given
    return found


def test_every_metric_is_on_the_page_with_its_labels() -> None:
    expected = {name: set(one.labels) - {PARTITION} for name, one in DEFINITIONS.items()}
    assert documented_labels() == expected


def test_the_page_has_the_list_of_absent_metrics() -> None:
    assert with_absent_table(PAGE) == PAGE, "run make docs"
