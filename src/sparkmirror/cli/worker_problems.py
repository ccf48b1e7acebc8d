"""What is wrong with a worker, one line per cause. Pure.

A cause is often known in several places: the trace of a task repeats the reasons of its partitions,
`/health` counts what connectors report. Each is shown once, at the place that knows most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.cli.worker_rest_client import ConnectorSummary, HealthSummary, PartitionSummary
from sparkmirror.copy.partition_problems_by_cause import cause_texts

HEALTHY = "healthy"
DEGRADED = "degraded"

Partitions = Mapping[str, Sequence[PartitionSummary]]
"""The partitions of each connector."""

_MORE_CAUSES = re.compile(r"and \d+ more causes?")
_OF_WORKER = re.compile(r"\bBut (?!connector |task )")
"""What `/health` says about the worker itself, not about its connectors."""
_SIDES = ("source: ", "target: ")
"""How the reason of a partition may begin: a task knows which side fails, a connector does not."""
_BOTH_SIDES = re.compile("; (?=source: |target: )")
"""What stands between two causes in the reason of a partition whose clusters both fail."""


def problem_lines(
    health: HealthSummary, connectors: Iterable[ConnectorSummary], partitions: Partitions
) -> list[str]:
    """Return a line for the worker, then for connectors and tasks, then for partitions.

    A degraded worker has a line if it has a problem of its own, or its connectors show none.
    """
    of_connectors = _connector_lines(connectors, partitions)
    of_partitions = _partition_lines(partitions)
    has_line = health.status != HEALTHY
    if health.status == DEGRADED:
        is_explained = bool(of_connectors or of_partitions)
        has_line = not is_explained or _OF_WORKER.search(health.message) is not None
    of_worker = [f"the worker is {health.status}: {health.message}"] if has_line else []
    return [*of_worker, *of_connectors, *of_partitions]


def unreachable_lines(unreachable: Iterable[Mapping[str, str]]) -> list[str]:
    """Return a line for each worker of the group that did not answer the asked one."""
    found = {
        worker: reason for of_connector in unreachable for worker, reason in of_connector.items()
    }
    return [f"worker {worker} does not answer: {found[worker]}" for worker in sorted(found)]


def unexplained_text(trace: str, reasons: Iterable[str]) -> str:
    """Return what a trace says beside the reasons of partitions, with or without their side."""
    texts = {text for reason in reasons for text in (reason, *_BOTH_SIDES.split(reason))}
    known = texts | set(map(_without_side, texts))
    for reason in sorted(known, key=len, reverse=True):
        trace = re.sub(rf"(^|; )(?:[^;]*: )?{re.escape(reason)}(?=; |$)", r"\1", trace)
    parts = (part.strip() for part in trace.split("; "))
    return "; ".join(part for part in parts if part and not _MORE_CAUSES.fullmatch(part))


def _without_side(reason: str) -> str:
    for side in _SIDES:
        reason = reason.removeprefix(side)
    return reason


def _connector_lines(connectors: Iterable[ConnectorSummary], partitions: Partitions) -> list[str]:
    found: list[tuple[str, str]] = []
    for connector in connectors:
        reasons = [partition.reason for partition in partitions.get(connector.name, ())]
        texts = (unexplained_text(text, filter(None, reasons)) for text in connector.errors)
        found += [(connector.name, text) for text in dict.fromkeys(texts)]
    return cause_texts(found, "connector")


def _partition_lines(partitions: Partitions) -> list[str]:
    return cause_texts(
        (f"{partition.topic}-{partition.partition}", partition.reason)
        for of_connector in partitions.values()
        for partition in of_connector
    )
