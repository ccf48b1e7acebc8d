"""Run maps: exact where they know, too low where they forgot, never ahead of the truth."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import RecordError, RunMapConflict
from sparkmirror.mirror.offsets import run_map_codec
from sparkmirror.mirror.offsets.run_map import MAX_OFFSET, OffsetRun, RunMap

DRAWN = [OffsetRun(10, 70, 5), OffsetRun(17, 75, 2), OffsetRun(20, 78, 2)]

holes = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4))
moves = st.lists(holes, min_size=1, max_size=40)


def mapped(runs: list[OffsetRun], known_from: int | None = None) -> RunMap:
    run_map = RunMap(known_from)
    for run in runs:
        run_map.append(*run)
    return run_map


def walked(steps: list[tuple[int, int, int]]) -> list[OffsetRun]:
    """Turn holes and lengths into runs."""
    runs, source, target = [], 5, 100
    for source_hole, target_hole, length in steps:
        source, target = source + source_hole, target + target_hole
        runs.append(OffsetRun(source, target, length))
        source, target = source + length, target + length
    return runs


def records(runs: list[OffsetRun]) -> list[tuple[int, int]]:
    """The copied records, one by one: the truth."""
    return [(s + n, t + n) for s, t, length in runs for n in range(length)]


def truth(copied: list[tuple[int, int]], position: int) -> int:
    """Where the first record at or after a position lies; the end if there is none yet."""
    return next((t for s, t in copied if s >= position), copied[-1][1] + 1)


def facts(run_map: RunMap) -> tuple[list[OffsetRun], int | None, int]:
    return list(run_map), run_map.known_from, run_map.coarse_runs


def test_the_drawing_is_true() -> None:
    run_map = mapped(DRAWN)
    positions = [9, 10, 14, 15, 16, 17, 19, 20, 22, 99]
    assert run_map.translate_downstream_many(positions) == [
        None,
        70,
        74,
        75,
        75,
        75,
        78,
        78,
        80,
        80,
    ]
    assert [
        run_map.translate_downstream(p) for p in positions
    ] == run_map.translate_downstream_many(positions)
    assert [run_map.translate_upstream(p) for p in (69, 70, 74, 75, 77, 78, 80, 99)] == [
        None, 10, 14, 17, 20, 20, 22, 22,
    ]  # fmt: skip
    assert (run_map.known_from, run_map.source_end, run_map.target_end) == (10, 22, 80)


def test_a_topic_without_holes_is_one_run_for_life() -> None:
    run_map = RunMap()
    for first in range(0, 100_000, 10):
        run_map.append(first, first, 10)
    assert list(run_map) == [OffsetRun(0, 0, 100_000)]
    assert run_map.translate_downstream(54_321) == 54_321


def test_many_at_once_are_answered_like_one_by_one() -> None:
    """In order, in steps beyond and within what is looked for nearby, backwards, and at random."""
    run_map = mapped([OffsetRun(n * 10, n * 9, 9) for n in range(1000)])
    shuffled = random.Random(1).sample(range(10_000), 500)
    for positions in (range(0, 10_050, 7), range(0, 10_050, 650), range(10_050, 0, -3), shuffled):
        assert run_map.translate_downstream_many(positions) == [
            run_map.translate_downstream(p) for p in positions
        ]


def test_an_empty_map_answers_nothing() -> None:
    run_map = RunMap()
    assert run_map.translate_downstream(0) is None
    assert run_map.translate_downstream_many([0, 1]) == [None, None]
    assert run_map.translate_upstream(0) is None
    assert (run_map.source_end, run_map.target_end, len(run_map)) == (None, None, 0)


def test_positions_before_the_first_record_but_after_the_start_are_known() -> None:
    """The source's log began at 3 and compaction had emptied it up to 10."""
    run_map = mapped(DRAWN, known_from=3)
    assert run_map.translate_downstream_many([2, 3, 9, 10]) == [None, 70, 70, 70]
    assert [run_map.translate_downstream(p) for p in (2, 3)] == [None, 70]


@pytest.mark.parametrize(
    "run",
    [
        OffsetRun(21, 90, 1),
        OffsetRun(30, 79, 1),
        OffsetRun(30, 90, 0),
        OffsetRun(30, 90, -1),
        OffsetRun(MAX_OFFSET, 90, 1),
    ],
)
def test_what_contradicts_the_map_is_refused(run: OffsetRun) -> None:
    run_map = mapped(DRAWN)
    with pytest.raises(RunMapConflict):
        run_map.append(*run)
    assert list(run_map) == DRAWN


@pytest.mark.parametrize("run", [OffsetRun(-1, 0, 2), OffsetRun(0, -1, 2), OffsetRun(2, 0, 1)])
def test_a_first_run_lies_within_the_logs(run: OffsetRun) -> None:
    with pytest.raises(RunMapConflict, match="lies before 3"):
        RunMap(3).append(*run)


@settings(max_examples=50)
@given(moves)
def test_answers_are_exact_and_in_order(steps: list[tuple[int, int, int]]) -> None:
    runs = walked(steps)
    copied = records(runs)
    run_map = mapped(runs)
    positions = range(copied[0][0], copied[-1][0] + 3)
    expected = [truth(copied, p) for p in positions]
    assert run_map.translate_downstream_many(positions) == expected
    assert run_map.translate_downstream_many(reversed(positions)) == expected[::-1]
    assert [run_map.translate_downstream(p) for p in positions] == expected
    back = [(t, s) for s, t in copied]
    targets = range(copied[0][1], copied[-1][1] + 3)
    assert [run_map.translate_upstream(p) for p in targets] == [truth(back, p) for p in targets]


@settings(max_examples=50)
@given(moves)
def test_touching_runs_are_one(steps: list[tuple[int, int, int]]) -> None:
    run_map = mapped(walked(steps))
    whole = list(run_map)
    for before, after in zip(whole, whole[1:], strict=False):
        source_hole = after.source_first - before.source_first - before.length
        target_hole = after.target_first - before.target_first - before.length
        assert source_hole > 0 or target_hole > 0
    assert records(whole) == records(walked(steps))


@settings(max_examples=50)
@given(moves, st.integers(2, 12))
def test_bounding_only_ever_sends_back(steps: list[tuple[int, int, int]], limit: int) -> None:
    runs = walked(steps)
    copied = records(runs)
    run_map = RunMap()
    for run in runs:
        run_map.append(*run)
        run_map.limit_runs(limit)
        assert len(run_map) <= limit
    positions = range(copied[0][0], copied[-1][0] + 3)
    answers = run_map.translate_downstream_many(positions)
    assert answers == [run_map.translate_downstream(p) for p in positions]
    known = [answer for answer in answers if answer is not None]
    assert len(known) == len(answers), "no position becomes too old"
    assert known == sorted(known)
    assert all(a <= truth(copied, p) for a, p in zip(known, positions, strict=True))
    back = [(t, s) for s, t in copied]
    for target in range(copied[0][1], copied[-1][1] + 3):
        found = run_map.translate_upstream(target)
        assert found is not None
        assert found <= truth(back, target)


def test_bounding_keeps_the_newest_half_exact() -> None:
    runs = [OffsetRun(n * 10, n * 9, 9) for n in range(1000)]
    run_map = mapped(runs)
    run_map.limit_runs(100)
    assert len(run_map) <= 100
    assert list(run_map)[-50:] == runs[-50:]
    assert list(run_map)[0] == runs[0]
    assert run_map.translate_downstream(9_505) == 950 * 9 + 5


def test_a_target_cut_where_runs_were_dropped_stays_coarse_there() -> None:
    """Runs 0, 4, 8 ... of the older half are left. The target is cut behind run 6, of which
    nothing is known, and copying goes on behind a hole: the records of runs 5 and 6 lie between.
    """
    run_map = mapped([OffsetRun(n * 10, n * 9, 9) for n in range(41)])
    run_map.limit_runs(20)
    assert [run.source_first for run in run_map][:3] == [0, 80, 160]
    cut = 7 * 9
    assert run_map.truncate_downstream(cut) == 9
    run_map.append(100, cut, 9)
    assert run_map.translate_downstream(50) == 9
    for n in range(11, 30):
        run_map.append(n * 10, cut + n * 9, 9)
    run_map.limit_runs(4)
    assert run_map.translate_downstream(50) == 9


@pytest.mark.parametrize("cut", [62 * 9, 59 * 9])
def test_bounding_a_map_that_is_mostly_coarse_forgets_no_hole(cut: int) -> None:
    """Of 81 runs 8 old ones are left, and of the newer ones the cut leaves one, or none."""
    run_map = mapped([OffsetRun(n * 10, n * 9, 9) for n in range(81)])
    run_map.limit_runs(40)
    run_map.truncate_downstream(cut)
    assert run_map.coarse_runs == 8
    assert len(run_map) in (8, 9)
    run_map.limit_runs(7)
    run_map.append(1000, cut, 1)
    for position in range(590):
        answer = run_map.translate_downstream(position)
        assert answer is not None
        assert answer <= position // 10 * 9 + position % 10


def test_forgetting_the_head_leaves_no_more_holes_coarse_than_before() -> None:
    run_map = mapped([OffsetRun(n * 10, n * 18, 9) for n in range(41)])
    run_map.limit_runs(20)
    exact_from = list(run_map)[run_map.coarse_runs].source_first
    run_map.drop_before(exact_from)
    assert run_map.coarse_runs == 0
    assert run_map.translate_downstream(exact_from + 9) == (exact_from // 10 + 1) * 18


def test_a_map_needs_room_for_two_runs() -> None:
    with pytest.raises(ValueError, match="needs room for 2 runs"):
        RunMap().limit_runs(1)


@settings(max_examples=50)
@given(moves, st.integers(0, 150), st.integers(2, 12))
def test_forgetting_the_head_changes_no_answer_behind_it(
    steps: list[tuple[int, int, int]], log_start: int, limit: int
) -> None:
    runs = walked(steps)
    run_map, before = mapped(runs), mapped(runs)
    for one in (run_map, before):
        one.limit_runs(limit)
    run_map.drop_before(log_start)
    first = max(log_start, runs[0].source_first)
    assert run_map.known_from == first
    assert len(run_map) <= len(before)
    for position in range(first, first + 160):
        assert run_map.translate_downstream(position) == before.translate_downstream(position)
    assert run_map.translate_downstream(first - 1) is None
    assert run_map.translate_downstream_many([first - 1]) == [None]
    targets = range(runs[0].target_first, runs[-1].target_first + 5)
    assert {run_map.translate_upstream(t) for t in targets} <= {
        before.translate_upstream(t) for t in targets
    } | {None}


def test_what_is_forgotten_is_not_kept() -> None:
    run_map = mapped(DRAWN)
    run_map.drop_before(16)
    assert list(run_map) == DRAWN[1:]
    assert run_map.translate_downstream_many([15, 16, 17]) == [None, 75, 75]
    run_map.drop_before(99)
    assert list(run_map) == DRAWN[2:]
    assert run_map.translate_downstream_many([98, 99]) == [None, 80]


def test_of_what_was_copied_again_only_the_new_part_is_added() -> None:
    run_map = mapped(DRAWN)
    run_map.append_overlapping(17, 80, 2)
    assert list(run_map) == DRAWN
    run_map.append_overlapping(20, 82, 5)
    run_map.append_overlapping(25, 87, 1)
    assert list(run_map) == [*DRAWN, OffsetRun(22, 84, 4)]
    assert run_map.translate_downstream_many([17, 21, 22]) == [75, 79, 84]
    assert run_map.translate_upstream(82) == 22


def test_copied_again_into_an_empty_map_is_copied() -> None:
    run_map = RunMap()
    run_map.append_overlapping(3, 4, 5)
    assert list(run_map) == [OffsetRun(3, 4, 5)]


def test_a_truncated_target_says_where_to_copy_from() -> None:
    run_map = mapped(DRAWN)
    assert run_map.truncate_downstream(99) == 22
    assert run_map.truncate_downstream(77) == 19
    assert run_map.truncate_downstream(72) == 12
    assert list(run_map) == [OffsetRun(10, 70, 2)]
    assert run_map.truncate_downstream(70) is None
    run_map.append(0, 70, 1)
    assert run_map.translate_downstream(0) == 70


def test_a_reset_map_begins_anew() -> None:
    run_map = mapped(DRAWN)
    run_map.reset()
    assert facts(run_map) == ([], None, 0)
    run_map.append(0, 80, 3)
    assert run_map.translate_downstream(1) == 81


operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), holes),
        st.tuples(st.just("bound"), st.integers(2, 6)),
        st.tuples(st.just("forget"), st.integers(0, 60)),
        st.tuples(st.just("resume_before"), st.integers(0, 12)),
        st.tuples(st.just("truncate"), st.integers(0, 12)),
    ),
    max_size=30,
)


class World:
    """A source and a target log, and the map somebody keeps of them."""

    def __init__(self) -> None:
        self.run_map = RunMap()
        self.copied: list[tuple[int, int]] = []  # (source, target), as the target's log has them
        self.source = self.target = 0

    def append(self, step: tuple[int, int, int]) -> None:
        source_hole, target_hole, length = step
        first = self.source + source_hole, self.target + target_hole
        if self.source < (self.run_map.source_end or 0):
            self.run_map.append_overlapping(*first, length)
        else:
            self.run_map.append(*first, length)
        self.copied += [(first[0] + n, first[1] + n) for n in range(length)]
        self.source, self.target = first[0] + length, first[1] + length

    def bound(self, limit: int) -> None:
        self.run_map.limit_runs(limit)

    def forget(self, log_start: int) -> None:
        self.run_map.drop_before(log_start)

    def resume_before(self, distance: int) -> None:
        self.source = max(0, self.source - distance)

    def truncate(self, distance: int) -> None:
        self.target = max(0, self.target - distance)
        self.copied = [(s, t) for s, t in self.copied if t < self.target]
        source = self.run_map.truncate_downstream(self.target)
        if source is None:
            source, self.copied = 0, []  # the copy begins anew
        self.source = source

    def check(self) -> None:
        """No copied record at or after a position lies before the answer in all its copies."""
        last_copy = dict(self.copied)
        answers = []
        for position in range((self.run_map.source_end or 0) + 2):
            answer = self.run_map.translate_downstream(position)
            if answer is None:
                continue
            answers.append(answer)
            assert all(t >= answer for s, t in last_copy.items() if s >= position)
        assert answers == sorted(answers)


@settings(max_examples=80)
@given(operations)
def test_never_ahead_whatever_happens(script: list[tuple[str, object]]) -> None:
    world = World()
    for name, argument in script:
        getattr(world, name)(argument)
        world.check()
        again = run_map_codec.decode_run_map(run_map_codec.encode_run_map(world.run_map))
        assert facts(again) == facts(world.run_map)


def test_a_map_is_small_when_written() -> None:
    runs = [OffsetRun(n * 10, n * 9, 9) for n in range(1000)]
    assert len(run_map_codec.encode_run_map(mapped(runs))) < 3.1 * len(runs)
    assert len(run_map_codec.encode_run_map(RunMap())) == 8


def test_large_offsets_are_written() -> None:
    run_map = mapped([OffsetRun(2**62, 2**61, 7), OffsetRun(MAX_OFFSET - 5, MAX_OFFSET - 9, 4)])
    assert facts(run_map_codec.decode_run_map(run_map_codec.encode_run_map(run_map))) == facts(
        run_map
    )


def signed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "checksum"),
        (b"\0\0\0\0", "checksum"),
        (run_map_codec.encode_run_map(mapped(DRAWN))[:-1], "checksum"),
        (signed(b"\x02\0\0\0"), "Version 2"),
        (signed(b"\x01\0\0"), "as many runs as it says"),
        (signed(b"\x01\x01\0\x01\0\0"), "as many runs as it says"),
        (signed(b"\x01\0\0\0\0"), "as many runs as it says"),
        (signed(b"\x01\0\0\x80"), "middle of a number"),
        (signed(b"\x01\x01\0\x01\0\0\0"), "makes no sense"),
        (signed(b"\x01\x01\x02\x01\0\0\x01"), "makes no sense"),
        (signed(b"\x01\x01\0\0\0\0\x01"), "makes no sense"),
        (signed(b"\x01\x01\0\x01\0\0" + b"\xff" * 9 + b"\x01"), "makes no sense"),
    ],
)
def test_damaged_bytes_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(RecordError, match=why):
        run_map_codec.decode_run_map(data)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_is_noticed(place: int, change: int) -> None:
    data = bytearray(run_map_codec.encode_run_map(mapped(DRAWN)))
    data[place % len(data)] ^= change
    with pytest.raises(RecordError):
        run_map_codec.decode_run_map(bytes(data))
