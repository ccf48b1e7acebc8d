"""Existing records: the decision table, and what the operator reads."""

from __future__ import annotations

import pytest

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.existing.on_existing_policy import (
    ExistingPartition,
    decide_found,
    decide_without_search,
    needs_search,
)
from sparkmirror.copy.driver.resume.existing.position_search import Finding, SearchResult
from sparkmirror.copy.job import ExistingRecordsPolicy
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

PARTITION = ExistingPartition(
    source=TopicPartition("t", 0),
    target=TopicPartition("A.t", 0),
    source_range=LogRange(start=5, end=90, high_watermark=90),
    target_range=LogRange(start=0, end=40, high_watermark=40),
    start=7,
)
HOLDS = "the connector has no position, and A.t-0 holds offsets 0 to 39; "


@pytest.mark.parametrize(
    ("finding", "position", "kind"),
    [
        (Finding.FOUND, 31, "adopted"),
        (Finding.SOURCE_LATER, 5, "adopted"),
        (Finding.FOREIGN, 7, "foreign-records"),
        (Finding.AMBIGUOUS, None, "existing-records"),
        (Finding.UNKNOWN, None, "existing-records"),
        (Finding.NO_RECORDS, 7, ""),
    ],
)
def test_adopt_decides_by_what_was_found(finding: Finding, position: int | None, kind: str) -> None:
    found = SearchResult(
        finding=finding, source_offset=30, target_offset=38, other_source_offset=35
    )
    decided = decide_found(PARTITION, found)
    assert (decided.position, decided.kind) == (position, kind)
    assert bool(decided.text) == bool(kind)
    assert decided.copied == (OffsetRun(30, 38, 1) if finding is Finding.FOUND else None)
    if position is None:
        assert "copying stops; decide with sparkmirror.on.existing: append copies" in decided.text


def test_an_adoption_names_both_offsets_and_what_follows() -> None:
    found = SearchResult(finding=Finding.FOUND, source_offset=30, target_offset=37, following=2)
    assert decide_found(PARTITION, found).text == (
        f"{HOLDS}source offset 30 is remote offset 37; 2 records follow it in the remote partition"
        " that t-0 does not hold; copying goes on at source offset 31"
    )


def test_append_and_halt_do_not_search() -> None:
    adopt, append, halt = ExistingRecordsPolicy
    assert [needs_search(policy) for policy in (adopt, append, halt)] == [True, False, False]
    appended = decide_without_search(PARTITION, append)
    assert (appended.position, appended.kind) == (7, "existing-records")
    halted = decide_without_search(PARTITION, halt)
    assert (halted.position, halted.kind) == (None, "existing-records")
    assert halted.text == (
        f"{HOLDS}sparkmirror.on.existing=halt; copying stops; decide with sparkmirror.on.existing:"
        " adopt searches the last of them at the source and goes on behind it, append copies from"
        " source offset 7 on and puts the records behind, or set the offset of the partition over"
        " REST"
    )
