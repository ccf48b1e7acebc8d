"""Which records a target without producer ids has: nothing is skipped, whatever came twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.driver.fencing.log_comparison import (
    copied_records,
    extend_runs,
    has_same_content,
)
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.batch.records import Record

FOREIGN = -1


def records(values: list[int]) -> list[Record]:
    """Return a record for each value, at its index as offset."""
    return [Record(n, 1000 + value, b"k", b"%d" % value) for n, value in enumerate(values)]


def found(source: list[int], target: list[int]) -> list[tuple[int, int]]:
    timed = [(record, True) for record in records(target)]
    return list(copied_records(iter(records(source)), timed))


def test_records_that_lie_one_after_the_other_are_found() -> None:
    assert found([1, 2, 3, 4], [1, 2, 3]) == [(0, 0), (1, 1), (2, 2)]


def test_a_repeated_batch_and_records_of_others_are_passed_over() -> None:
    assert found([1, 2, 3, 4, 5], [1, 2, 1, 2, 9, 3, 4]) == [(0, 0), (1, 1), (2, 5), (3, 6)]


def test_a_batch_that_is_there_only_once_more_adds_nothing() -> None:
    assert found([7, 8], [5, 6]) == []


def test_a_target_that_sets_timestamps_is_compared_without_them() -> None:
    source, (copy,) = records([1]), records([1])
    later = copy._replace(timestamp=5)
    assert list(copied_records(iter(source), [(later, True)])) == []
    assert list(copied_records(iter(source), [(later, False)])) == [(0, 0)]


@given(
    st.lists(st.integers(0, 3), max_size=30),
    st.data(),
)
def test_every_record_before_the_position_is_on_the_target_in_order(
    source: list[int], data: st.DataObject
) -> None:
    """The target has a prefix of the source in batches; batches repeat, foreign records occur."""
    copied = data.draw(st.integers(0, len(source)))
    target: list[int] = []
    at = 0
    while at < copied:
        size = data.draw(st.integers(1, copied - at))
        batch = source[at : at + size]
        target += batch * data.draw(st.integers(1, 3))
        target += [FOREIGN] * data.draw(st.integers(0, 2))
        at += size
    matches = found(source, target)
    assert [one for one, _ in matches] == list(range(len(matches)))
    places = [place for _, place in matches]
    assert places == sorted(set(places)), "each has a target record of its own, in order"
    assert all(source[one] == target[place] for one, place in matches)
    assert len(matches) >= copied, "everything that was copied is found"


def test_runs_grow_while_both_offsets_do() -> None:
    runs: list[OffsetRun] = []
    for source_offset, target_offset in [(5, 50), (6, 51), (7, 53), (9, 54), (10, 55)]:
        extend_runs(runs, source_offset, target_offset)
    assert runs == [OffsetRun(5, 50, 2), OffsetRun(7, 53, 1), OffsetRun(9, 54, 2)]


def test_headers_are_part_of_the_content() -> None:
    (record,) = records([1])
    assert has_same_content(record, record._replace(offset=9, timestamp=9))
    assert not has_same_content(record, record._replace(headers=((b"h", None),)))
