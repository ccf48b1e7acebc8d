"""The table of troubles: docs/operate.md prints it, and every row has a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spark.troubles.comparison import differences
from tests.spark.troubles.markdown import PAGE, with_table
from tests.spark.troubles.provocations import PROVOCATIONS
from tests.spark.troubles.surfaces import Surfaces
from tests.spark.troubles.trouble import TEST, Trouble, has_text
from tests.spark.troubles.trouble_table import TROUBLES

ROOT = Path(__file__).parents[3]


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert with_table(page) == page, "make docs prints it"


def test_every_trouble_is_provoked_or_names_another_test() -> None:
    names = [trouble.name for trouble in TROUBLES]
    assert len(set(names)) == len(names)
    provoked = {trouble.name for trouble in TROUBLES if trouble.proof == TEST}
    assert provoked == set(PROVOCATIONS)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_the_test_of_a_trouble_exists(trouble: Trouble) -> None:
    file, _, name = trouble.proof.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("a: …: refused", "x a: 10.0.0.1:9092: refused; check", True),
        ("a: …: refused", "a: x\n: refused", False),
        ("a (b)", "a (b)", True),
    ],
)
def test_an_ellipsis_stands_for_anything_on_a_line(text: str, found: str, expected: bool) -> None:
    assert has_text(text, found) == expected


def test_every_surface_that_differs_is_named() -> None:
    trouble = next(trouble for trouble in TROUBLES if trouble.name == "source-down-idle")
    healthy = Surfaces(
        connector_state="RUNNING",
        connector_trace="",
        task_states=("RUNNING",),
        task_trace="",
        health_code=200,
        health="healthy",
        health_message="",
        partition_state="leased",
        reason="",
        lag=0,
        events=(),
        log="",
        exit_code=0,
        status_text="",
    )
    named = [line.partition(":")[0] for line in differences(trouble, healthy)]
    assert named == [
        "/health", "exit code of status", "lag",
        "connector", "task", "partition", "/health", "status", "log",
    ]  # fmt: skip
