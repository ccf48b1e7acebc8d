"""Processor time and memory of a process and its descendants."""

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
child = subprocess.Popen([sys.executable, "-c", busy + "\\nprint('done', flush=True)\\ninput()"])
input()
"""


def stat(pid: int, parent: int) -> Stat:
    return Stat(pid=pid, parent=parent, start_ticks=pid, cpu_ticks=0)


def test_a_stat_line_is_read_after_its_last_bracket() -> None:
    assert parse_stat(LINE) == Stat(pid=4242, parent=17, start_ticks=987654, cpu_ticks=127)


def test_memory_counts_the_proportional_share_of_shared_pages() -> None:
    rollup = (
        "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:   300 kB\nPss_Dirty: 7 kB\n"
    )
    assert parse_pss_bytes(rollup) == 300 * 1024
    assert parse_pss_bytes("") == 0


def test_descendants_include_the_roots_themselves() -> None:
    stats = {s.pid: s for s in (stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 1), stat(5, 4))}
    assert descendants([2], stats) == {2, 3}
    assert descendants([2, 4], stats) == {2, 3, 4, 5}
    assert descendants([9], stats) == set()


def test_processor_time_includes_running_and_ended_children() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY_PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        tree = ProcessTree(parent.pid)
        assert parent.stdout.readline() == b"done\n"
        assert tree.cpu_s() >= 0.28, "both children use 0.15 s each"
        assert tree.memory_bytes() > 2_000_000
        assert 0 < tree.age_s() < 60
        tree.kill()
        assert parent.wait() == -9
