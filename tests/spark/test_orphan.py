"""Nobody outlives the parent: a supervisor that is killed takes everything with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.drivers import JVM, WORKER
from tests.support.processes import all_processes, of_session
from tests.support.waiting import wait_until

PARENT = r"""
import sys
from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.rehearsal import rehearsed_job
from sparkmirror.engine.supervisor import Supervisor
place = sys.argv[1]
assignment = Assignment(job=rehearsed_job(1), receipts=place + "/receipts", log=place + "/log")
with Supervisor(assignment, module="tests.support.spark_driver") as supervisor:
    for status in supervisor.statuses():
        sys.stdout.write(f"{status.snapshot.lanes.get('pids')}\n")
        sys.stdout.flush()
"""


def test_a_killed_parent_leaves_nothing_running(importable: None, tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    for line in parent.stdout:
        if "0" in line:
            break  # a task has come
    [driver] = [one for one in all_processes() if one.parent == parent.pid]
    assert of_session(driver.pid, JVM)
    assert of_session(driver.pid, WORKER)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not of_session(driver.pid), "everything to end", timeout_s=180)
