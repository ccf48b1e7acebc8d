"""Nobody outlives the parent: a supervisor that is killed takes everything with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes import all_processes, session_processes
from tests.support.spark.observed_driver import JVM, PYTHON_WORKER
from tests.support.waiting import wait_until

PARENT = r"""
import sys
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
directory = sys.argv[1]
spec = DriverSpec(
    job=job_without_partitions(1), receipts=directory + "/receipts", log=directory + "/log"
)
with DriverSupervisor(spec, module="tests.support.spark.noop_driver") as supervisor:
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
    assert session_processes(driver.pid, JVM)
    assert session_processes(driver.pid, PYTHON_WORKER)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not session_processes(driver.pid), "everything to end", timeout_s=180)
