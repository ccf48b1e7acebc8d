"""One trouble and what every surface says about it. Values only.

In a text, "…" stands for anything on the same line: an address, an offset, a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ANYTHING = "…"
HEALTHY = "healthy"
DEGRADED = "degraded"
STARTING = "starting"
UNHEALTHY = "unhealthy"
RUNNING = "RUNNING"
FAILED = "FAILED"
TEST = "tests/spark/test_troubles.py::test_every_surface_tells_a_trouble"
CLUSTER_TEST = f"{TEST}_of_a_spark_cluster"
"""It provokes several troubles on one other worker, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What an operator sees while a trouble lasts.

    The default is a trouble of partitions: everything is RUNNING, the task and its partitions have
    the remark, `/health` is degraded and has it, too; `sparkmirror status` prints it and ends
    with 2.
    """

    name: str
    """The id of the test case."""
    title: str
    remark: str = ""
    """The text of the cause, the same on every surface; empty if nothing is stuck."""
    connector: str = RUNNING
    on_connector: bool = False
    """Whether the trace of the connector has the remark."""
    task: str = RUNNING
    """Empty if the connector has no tasks."""
    on_task: bool = True
    """Whether the trace of a task has the remark."""
    health: str = DEGRADED
    health_message: str = ""
    """What `/health` says instead of the remark."""
    partition: str = "held"
    """The state of the partition; several have "or" between them; empty if none is shown."""
    on_partition: bool = True
    """Whether the reason of the partition is the remark."""
    knows_lag: bool | None = False
    """None if that depends on the moment."""
    least_lag: int = 0
    """A lag that is known is at least so large: so many records wait to be copied."""
    event: str = ""
    log: str = ""
    """A line of the worker's log, if it is not one that has the event or the remark."""
    exit_code: int = 2
    """Of `sparkmirror status`."""
    appears_within_s: int
    disappears_within_s: int
    advice: str
    proof: str = TEST
    lasts: bool = True
    """Whether it lasts until the operator does something; else the mirror ends it by itself."""
    watched_s: int = 2
    """For so long after it has appeared, nothing may claim that all is well."""

    @property
    def is_of_worker(self) -> bool:
        """Whether neither the connector nor a task has the remark."""
        return not self.on_connector and not (self.on_task and self.task)


def has_text(text: str, found: str) -> bool:
    """Whether a line of `found` has the text."""
    return bool(found_text(text, found))


def found_text(text: str, found: str) -> str:
    """Return what stands for the text in the first line of `found` that has it; else nothing."""
    parts = (re.escape(part) for part in text.split(ANYTHING))
    match = re.search(".*?".join(parts), found)
    return match[0] if match else ""
