"""The search for the position: it finds the last copied record, or says that it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.driver.resume.existing import position_search
from sparkmirror.copy.driver.resume.existing.log_part import LoggedRecord
from sparkmirror.copy.driver.resume.existing.position_search import Finding, SearchResult
from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.model import TopicPartition
from tests.support.copy.existing_logs import MARKER, ExistingLogs, LogInMemory, record

MINUTE_MS = 60_000


def numbered(first: int, end: int, step_ms: int = 10) -> list[LoggedRecord]:
    """Records that all differ, in the order of time."""
    return [record(f"v{number}", 1_000_000 + step_ms * number) for number in range(first, end)]


def foreign(count: int, timestamp: int) -> list[LoggedRecord]:
    return [record(f"f{number}", timestamp) for number in range(count)]


def log(*slots: LoggedRecord | None) -> LogInMemory:
    return LogInMemory().append(slots)


def sync(upstream: int, downstream: int) -> OffsetSync:
    return OffsetSync(partition=TopicPartition("t", 0), upstream=upstream, downstream=downstream)


def found(source: int, target: int, following: int = 0) -> SearchResult:
    return SearchResult(
        finding=Finding.FOUND, source_offset=source, target_offset=target, following=following
    )


def test_a_copied_prefix_is_found_with_few_reads() -> None:
    logs = ExistingLogs(log(*numbered(0, 5000)), log(*numbered(0, 3000)))
    assert logs.search() == found(2999, 2999)
    assert logs.reads <= 3


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(log(*numbered(0, 30), MARKER), found(29, 30 - 1), id="fence"),
        pytest.param(
            log(*[slot for one in numbered(0, 300) for slot in (one, MARKER)]),
            found(299, 598),
            id="marker-after-every-record",
        ),
        pytest.param(log(*numbered(700, 730)), found(729, 29), id="mirror-began-later"),
        pytest.param(
            log(*numbered(0, 600)).without(range(100, 590)), found(599, 599), id="compacted-copy"
        ),
        pytest.param(
            log(*numbered(0, 600)).deleted_before(598), found(599, 599), id="remote-retention"
        ),
        pytest.param(
            log(*numbered(0, 600)).with_append_times(), found(599, 599), id="append-times"
        ),
        pytest.param(
            log(*numbered(500, 600), MARKER, MARKER).with_append_times(),
            SearchResult(finding=Finding.FOUND, source_offset=599, target_offset=99),
            id="append-times-and-other-offsets",
        ),
        pytest.param(log(MARKER, MARKER), SearchResult(finding=Finding.NO_RECORDS), id="markers"),
    ],
)
def test_gaps_and_markers_do_not_hide_the_last_copied_record(
    target: LogInMemory, expected: SearchResult
) -> None:
    assert ExistingLogs(log(*numbered(0, 1000)), target).search() == expected


def test_records_larger_than_a_read_make_the_window_shorter() -> None:
    source, target = log(*numbered(0, 1000)), log(*numbered(0, 600), MARKER)
    source.records_per_read = target.records_per_read = 1
    assert ExistingLogs(source, target).search() == found(599, 599)


def test_times_out_of_order_are_searched_behind_the_first_later_one() -> None:
    records = numbered(0, 200)
    records[20] = record("early", records[190].timestamp)
    target = log(MARKER, *records[:181])
    assert ExistingLogs(log(*records), target).search() == found(180, 181)


def test_equal_records_in_a_row_are_counted_from_the_last_different_one() -> None:
    equal = [record("same", 2_000_000)] * 500
    source = log(*numbered(0, 20), *equal)
    target = log(*numbered(0, 20), MARKER, *equal[:300])
    assert ExistingLogs(source, target).search() == found(319, 320)


def test_equal_records_beyond_the_window_are_ambiguous_without_a_sync() -> None:
    equal = [record("same", 2_000_000)] * 3500
    source = log(*numbered(0, 20), *equal)
    target = log(*numbered(0, 20), MARKER, *equal[:3000])
    assert ExistingLogs(source, target).search().finding is Finding.AMBIGUOUS
    near = [sync(2900, 2901)]
    assert ExistingLogs(source, target, near).search() == found(3019, 3020)


def test_a_stale_sync_does_no_harm() -> None:
    logs = ExistingLogs(log(*numbered(0, 900)), log(MARKER, *numbered(0, 400)), [sync(800, 390)])
    assert logs.search() == found(399, 400)


@pytest.mark.parametrize("later_ms", [0, 3 * MINUTE_MS])
def test_foreign_records_behind_the_copies_are_passed_over(later_ms: int) -> None:
    source, copies = log(*numbered(0, 5000)), numbered(0, 400)
    target = log(*copies, *foreign(100, copies[-1].timestamp + later_ms))
    assert ExistingLogs(source, target).search() == found(399, 399, following=100)


def test_foreign_records_between_the_copies_are_passed_over() -> None:
    copies = numbered(0, 400)
    mixed = [slot for one in copies for slot in (record("f", one.timestamp), one)]
    assert ExistingLogs(log(*numbered(0, 900)), log(*mixed)).search() == found(399, 799)


def test_a_source_that_was_compacted_is_met_at_the_last_record_that_is_left() -> None:
    source = log(*numbered(0, 900)).without([397, 398, 399])
    target = log(*numbered(0, 400))
    assert ExistingLogs(source, target).search() == found(396, 396, following=3)
    everything = log(*numbered(0, 900)).without(range(1, 600))
    assert ExistingLogs(everything, log(*numbered(1, 400))).search().finding is Finding.UNKNOWN


def test_a_log_of_another_program_is_foreign_if_the_source_has_its_time() -> None:
    source = log(*numbered(0, 5000, step_ms=1000))
    target = log(*foreign(300, source.records[2000].timestamp + 1))
    assert ExistingLogs(source, target).search().finding is Finding.FOREIGN
    later = log(*foreign(300, source.records[-1].timestamp + 1))
    assert ExistingLogs(source, later).search().finding is Finding.UNKNOWN


def test_a_source_that_begins_after_the_last_remote_record() -> None:
    result = SearchResult(finding=Finding.SOURCE_LATER, target_offset=99)
    for start in (500, 900):
        source = log(*numbered(0, 900)).deleted_before(start)
        assert ExistingLogs(source, log(*numbered(0, 100))).search() == result


LETTERS = st.sampled_from("ab") | st.sampled_from("abcdefgh")


@st.composite
def copied_logs(draw: st.DrawFn) -> tuple[ExistingLogs, int]:
    """A source, a copy of its first records, and the source offset of the last one."""
    step = draw(st.sampled_from([0, 1, 20_000]))
    values = draw(st.lists(LETTERS, min_size=1, max_size=40))
    jitter = draw(st.lists(st.sampled_from([0, 0, -3, 3]), min_size=40, max_size=40))
    records = [
        record(value, 1_000_000 + step * number + (jitter[number] if step else 0))
        for number, value in enumerate(values)
    ]
    copied = draw(st.integers(1, len(records)))
    source, target = LogInMemory(), LogInMemory()
    for number, one in enumerate(records):
        source.append([*[MARKER] * draw(st.sampled_from([0, 0, 0, 1])), one])
        if number < copied:
            target.append([*[MARKER] * draw(st.sampled_from([0, 0, 0, 1])), one])
            if draw(st.sampled_from([False, False, False, True])):
                target.append([record("foreign", one.timestamp)])
    truth = source.records[copied - 1].offset
    own = [one for one in target.records if one.content[1] != b"foreign"]
    synced = draw(st.none() | st.integers(0, copied - 1))
    syncs = [] if synced is None else [sync(source.records[synced].offset, own[synced].offset)]
    if draw(st.booleans()):
        target = target.with_append_times()
    target = target.deleted_before(draw(st.sampled_from([0, 0, own[-1].offset])))
    source = source.deleted_before(draw(st.sampled_from([0, 0, truth])))
    source.records_per_read = draw(st.sampled_from([3, 1000]))
    target.records_per_read = draw(st.sampled_from([3, 1000]))
    return ExistingLogs(source, target, syncs), truth


@given(copied_logs())
def test_adoption_never_doubles_and_never_loses(logs_and_truth: tuple[ExistingLogs, int]) -> None:
    """A wrong offset or `foreign` would copy records twice, or leave records out."""
    logs, truth = logs_and_truth
    result = logs.search()
    assert result.finding in (Finding.FOUND, Finding.AMBIGUOUS, Finding.UNKNOWN)
    if result.finding is Finding.FOUND:
        assert result.source_offset == truth


@given(copied_logs(), st.sampled_from([(4, 8), (8, 16)]))
def test_a_short_window_is_ambiguous_rather_than_wrong(
    logs_and_truth: tuple[ExistingLogs, int], windows: tuple[int, int]
) -> None:
    logs, truth = logs_and_truth
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(position_search, "WINDOWS", windows)
        result = logs.search()
    if result.finding is Finding.FOUND and logs.target.records[-1].has_producer_time:
        assert result.source_offset == truth


@given(st.lists(LETTERS, min_size=1, max_size=60), st.data())
def test_logs_that_begin_together_are_never_ambiguous(
    values: list[str], data: st.DataObject
) -> None:
    """However alike the records are: the copies are counted."""
    copied = data.draw(st.integers(1, len(values)))
    records = [record(value) for value in values]
    logs = ExistingLogs(log(*records), log(*records[:copied]))
    assert logs.search() == found(copied - 1, copied - 1)
