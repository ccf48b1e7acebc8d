"""How fast and how small run maps are, next to what one would write first.

The baselines hold the same knowledge: a dictionary from every upstream offset to its downstream
offset (quick, but one entry per record), and a list of runs searched from its beginning. Ratios
are of the same process and the same minute, so they mean something on any machine.

    python -m bench micro run_maps
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable

from sparkmirror.mirror.offsets import run_map_codec
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap

RECORDS_PER_RUN = 9
LOOKUPS = 200_000
LARGEST_FOR_DICT = 100_000
LINEAR_STEPS = 5_000_000


def build(runs: int) -> RunMap:
    """A partition whose every transaction of nine records ends in a marker."""
    run_map = RunMap()
    for number in range(runs):
        run_map.append(number * (RECORDS_PER_RUN + 1), number * RECORDS_PER_RUN, RECORDS_PER_RUN)
    return run_map


def rate(calls: int, work: Callable[[], object]) -> float:
    """Calls per second of processor time, the best of three rounds."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return calls / best


def look_up_each(look_up: Callable[[int], object], positions: list[int]) -> None:
    """Call once per position, as a checkpoint task does per committed offset."""
    for position in positions:
        look_up(position)


def linear_search(runs: list[OffsetRun], position: int) -> int | None:
    """Search from the beginning."""
    for source_first, target_first, length in runs:
        if position < source_first + length:
            return target_first + max(0, position - source_first)
    return None


def show_lookups(runs: int) -> None:
    """Print look-ups per second for a map of so many runs, and the baselines'."""
    run_map = build(runs)
    end = run_map.source_end or 1
    chance = random.Random(runs)
    positions = [chance.randrange(end) for _ in range(LOOKUPS)]
    single = rate(LOOKUPS, lambda: look_up_each(run_map.translate_downstream, positions))
    print(f"{runs:>9,} runs: {single / 1e6:5.2f} M look-ups/s")
    listed = list(run_map)
    few = positions[: max(20, LINEAR_STEPS // (runs * 10))]
    slow = rate(len(few), lambda: look_up_each(lambda p: linear_search(listed, p), few))
    print(f"{'':>9}       {single / slow:,.1f} times a linear search", end="")
    if runs <= LARGEST_FOR_DICT:
        table = {s + n: t + n for s, t, length in listed for n in range(length)}
        quick = rate(LOOKUPS, lambda: look_up_each(table.get, positions))
        print(f", {single / quick:.2f} times a dictionary of {len(table):,} records", end="")
    print()


def show_growth(runs: int) -> None:
    """Print the append rate, and bytes per run in memory and encoded."""
    holes = rate(runs, lambda: build(runs))
    run_map = RunMap()

    def contiguous() -> None:
        first = run_map.source_end or 0
        for number in range(runs):
            run_map.append(first + number * 9, first + number * 9, 9)

    merged = rate(runs, contiguous)
    pairs: dict[int, int] = {}

    def naive() -> None:
        pairs.clear()
        for number in range(runs * RECORDS_PER_RUN):
            pairs[number] = number

    baseline = rate(runs, naive)
    print(f"append: {holes / 1e6:.2f} M runs/s, {merged / 1e6:.2f} M/s when they merge "
          f"(into {len(run_map)}); {holes / baseline:.1f} times a dictionary")  # fmt: skip
    tracemalloc.start()
    kept = build(runs)
    in_memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    encoded = run_map_codec.encode_run_map(kept)
    writing = rate(runs, lambda: run_map_codec.encode_run_map(kept))
    reading = rate(runs, lambda: run_map_codec.decode_run_map(encoded))
    print(f"bytes per run: {in_memory / runs:.1f} in memory, {len(encoded) / runs:.1f} encoded; "
          f"encode {writing / 1e6:.2f} M runs/s, decode {reading / 1e6:.2f} M runs/s")  # fmt: skip


def main() -> None:
    """Print everything."""
    for runs in (1, 1_000, 1_000_000):
        show_lookups(runs)
    show_growth(200_000)


if __name__ == "__main__":
    main()
