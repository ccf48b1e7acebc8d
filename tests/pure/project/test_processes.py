"""How tests find the processes of this computer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import (
    PROC_STAT,
    all_processes,
    processes_of_proc,
    processes_of_ps,
    session_processes,
)
from tests.support.waiting import wait_until

ENDLESS = "input()  # until its standard input is closed"


def test_a_session_has_its_processes_until_they_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdin=subprocess.PIPE, start_new_session=True
    ) as child:
        wait_until(lambda: bool(session_processes(child.pid, sys.executable, ENDLESS)), "its start")
        [found] = session_processes(child.pid)
        assert (found.pid, found.parent, found.session) == (child.pid, os.getpid(), child.pid)
        assert found in all_processes()
        assert session_processes(child.pid, "another program") == []
        child.kill()
        # It is a zombie until its parent waits for it.
        wait_until(lambda: not session_processes(child.pid), "its end")
    assert child.pid not in {one.pid for one in all_processes()}


@pytest.mark.skipif(not PROC_STAT.exists(), reason="this computer has no /proc")
def test_proc_says_what_ps_says(tmp_path: Path) -> None:
    program = tmp_path / "a) (name"
    program.symlink_to(sys.executable)
    with subprocess.Popen([program, "-c", ENDLESS], stdin=subprocess.PIPE) as child:

        def found_by_both() -> bool:
            mine = [one for one in processes_of_proc() if one.pid == child.pid]
            theirs = [one for one in processes_of_ps() if one.pid == child.pid]
            return mine == theirs and ENDLESS in mine[0].command

        wait_until(found_by_both, "both to list it with its arguments")
        child.kill()
