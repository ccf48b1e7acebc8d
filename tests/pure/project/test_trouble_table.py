"""The table of troubles: docs/operate.md prints it, and every row has a test that exists."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.copy.partition_problems_by_cause import MAX_CAUSES
from tests.spark.troubles.comparison import MAX_REPEATS, differences, flooding_lines, lies
from tests.spark.troubles.markdown import PAGE, with_table
from tests.spark.troubles.provocations import PROVOCATIONS
from tests.spark.troubles.surfaces import Surfaces
from tests.spark.troubles.trouble import CLUSTER_TEST, TEST, Trouble, has_text
from tests.spark.troubles.trouble_groups import OWN_CONNECTORS, SOAK_GROUPS, TROUBLE_GROUPS
from tests.spark.troubles.trouble_table import TROUBLES

ROOT = Path(__file__).parents[3]
ALL_IS_WELL = Surfaces(
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
    topic_row="row.t → east.row.t  ━━━━━━━━━━━━  10  0/s  0 B/s  0  done",
)


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert with_table(page) == page, "make docs prints it"


def test_every_trouble_is_provoked_or_the_page_names_another_test() -> None:
    names = [trouble.name for trouble in TROUBLES]
    assert len(set(names)) == len(names)
    assert {trouble.name for trouble in TROUBLES if trouble.proof == TEST} == set(PROVOCATIONS)
    text = (ROOT / CLUSTER_TEST.partition("::")[0]).read_text("utf-8")
    of_cluster = [trouble.name for trouble in TROUBLES if trouble.proof == CLUSTER_TEST]
    assert [name for name in of_cluster if f'"{name}"' not in text] == []
    others = [trouble for trouble in TROUBLES if trouble.proof not in (TEST, CLUSTER_TEST)]
    page = " ".join(PAGE.read_text("utf-8").split())
    assert [
        row for row in others if f'"{row.title}" by `{row.proof.split("::")[1]}`' not in page
    ] == []


def test_every_provocation_is_in_one_group() -> None:
    grouped = [name for names in TROUBLE_GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(PROVOCATIONS)
    assert set(OWN_CONNECTORS) <= set(PROVOCATIONS)
    assert set(SOAK_GROUPS) <= set(TROUBLE_GROUPS)


@pytest.mark.parametrize("group", TROUBLE_GROUPS)
def test_the_troubles_of_a_group_have_the_same_health(group: str) -> None:
    rows = [trouble_named(name) for name in TROUBLE_GROUPS[group] if name != "java-worker"]
    assert len({(row.health, row.exit_code, row.lasts) for row in rows}) == 1
    assert len(rows) <= MAX_CAUSES, "sparkmirror status only counts the others"
    of_worker = [row for row in rows if row.is_of_worker and row.remark]
    assert len(of_worker) <= 1, "/health has only the first problem of the worker"


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


def trouble_named(name: str) -> Trouble:
    return next(trouble for trouble in TROUBLES if trouble.name == name)


def test_every_surface_that_differs_is_named() -> None:
    trouble = trouble_named("source-down-idle")
    named = [line.partition(":")[0] for line in differences(trouble, ALL_IS_WELL)]
    assert named == [
        "/health", "exit code of status", "lag",
        "connector", "task", "partition", "status", "log", "/health",
    ]  # fmt: skip


def test_health_has_a_trouble_of_the_group_and_counts_the_others() -> None:
    trouble, other = trouble_named("unknown-host"), trouble_named("http-port")
    text = "But connector x: east: h:1: it answers in HTTP; check that this is the right port"

    def of_health(message: str, *others: Trouble) -> list[str]:
        seen = replace(ALL_IS_WELL, health="degraded", health_message=message)
        found = differences(trouble, seen, others)
        return [
            line.partition(" does not ")[2][:4] for line in found if line.startswith("/health: '")
        ]

    assert of_health(f"{text} (and 1 more)", other) == []
    assert of_health(text, other) == ["coun"]
    assert of_health(f"{text} (and 1 more)") == ["have"]
    assert of_health("But the worker (and 1 more)", other) == ["have"]


def test_everything_that_claims_that_all_is_well_is_a_lie() -> None:
    named = lies(trouble_named("target-down-loaded"), ALL_IS_WELL)
    assert [line.partition(":")[0] for line in named] == [
        "lag",
        "/health is healthy",
        "sparkmirror status ends with 0",
        "connector and tasks are RUNNING without a remark",
        "the topic looks finished",
    ]


@pytest.mark.parametrize(
    ("name", "lag", "is_lie"),
    [
        ("source-down-idle", 0, True),
        ("target-down-loaded", 0, True),
        ("target-down-loaded", 199, True),
        ("target-down-loaded", 200, False),
        ("no-read-at-source", 0, True),
        ("no-read-at-source", None, False),
        ("target-down-idle", 0, False),
    ],
)
def test_lag_is_a_lie_if_it_is_less_than_what_waits(
    name: str, lag: int | None, is_lie: bool
) -> None:
    found = lies(trouble_named(name), replace(ALL_IS_WELL, lag=lag))
    assert any(line.startswith("lag") for line in found) == is_lie


def test_topic_without_full_bar_and_word_does_not_look_finished() -> None:
    trouble = trouble_named("target-down-idle")
    stuck = replace(ALL_IS_WELL, topic_row="row.t → east.row.t  10  0/s  0 B/s  0  stuck")
    assert not any("finished" in line for line in lies(trouble, stuck))
    for row in (f"{stuck.topic_row} {12 * '━'}", f"{stuck.topic_row[:-5]} done"):
        found = lies(trouble, replace(ALL_IS_WELL, topic_row=row))
        assert any("finished" in line for line in found)


def test_reason_that_status_prints_twice_differs() -> None:
    trouble = trouble_named("source-down-idle")
    line = "main: east: PLAINTEXT 127.0.0.1:9092: connection refused; check whether the broker runs"
    twice = replace(ALL_IS_WELL, status_text=f"{line}\nrow.t-0: {line}\n")
    assert any("2 times" in found for found in differences(trouble, twice))
    others = (line.replace("9092", "9093"), f"2026-11-17 05:00:00 row.t-0: refused: {line}")
    for other in others:
        once = replace(ALL_IS_WELL, status_text=f"{line}\n{other}\n")
        assert not any("times" in found for found in differences(trouble, once))


def test_lines_that_differ_only_in_time_and_count_flood_the_log() -> None:
    line = "[2026-11-17 05:00:0{}] WARN [main] port 1 is closed{} (sparkmirror.x:7)"
    counts = ("", "", " (and 3 times more since it was last logged)", "", "")
    log = "\n".join(line.format(n, count) for n, count in enumerate(counts))
    assert [found.partition(":")[0] for found in flooding_lines(log)] == ["5 times"]
    assert flooding_lines("\n".join(log.splitlines()[:MAX_REPEATS])) == []
    assert flooding_lines(log.replace("WARN", "INFO")) == []
