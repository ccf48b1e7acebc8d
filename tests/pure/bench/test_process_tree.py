"""Processor time and memory of a program and all that it started."""

from __future__ import annotations

import subprocess
import sys

from bench.process_tree import ProcessTree, Stat, descendants, parse_pss_bytes, parse_stat

LINE = (
    "4242 (odd ) name (x) S 17 4242 4242 0 -1 4194560 9 8 7 6"
    " 100 20 3 4 20 0 5 0 987654 1000 200 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0"
)
BUSY_PARENT = """
import subprocess, sys
busy = "import time\\nwhile time.process_time() < 0.15: pass"
subprocess.run([sys.executable, "-c", busy])
child = subprocess.Popen([sys.executable, "-c", busy + "\\nprint('burnt', flush=True)\\ninput()"])
input()
"""


def stat(pid: int, parent: int) -> Stat:
    return Stat(pid=pid, parent=parent, start_ticks=pid, cpu_ticks=0)


def test_a_stat_line_is_read_behind_the_last_bracket() -> None:
    assert parse_stat(LINE) == Stat(pid=4242, parent=17, start_ticks=987654, cpu_ticks=127)


def test_shared_pages_are_counted_by_their_share() -> None:
    rollup = (
        "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:   300 kB\nPss_Dirty: 7 kB\n"
    )
    assert parse_pss_bytes(rollup) == 300 * 1024
    assert parse_pss_bytes("") == 0


def test_a_family_is_the_root_and_all_below_it() -> None:
    stats = {s.pid: s for s in (stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 1), stat(5, 4))}
    assert descendants([2], stats) == {2, 3}
    assert descendants([2, 4], stats) == {2, 3, 4, 5}
    assert descendants([9], stats) == set()


def test_children_count_while_they_live_and_after_they_were_waited_for() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY_PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        tree = ProcessTree(parent.pid)
        assert parent.stdout.readline() == b"burnt\n"
        assert tree.cpu_s() >= 0.28, "both children burnt 0.15 s each"
        assert tree.memory_bytes() > 2_000_000
        assert 0 < tree.age_s() < 60
        tree.kill()
        assert parent.wait() == -9
