"""All metrics, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Final

from sparkmirror.metrics import (
    client_metrics,
    connect_metrics,
    coordinator_metrics,
    mirror_metrics,
    process_metrics,
    sparkmirror_metrics,
    task_metrics,
)
from sparkmirror.metrics.definition import MetricDefinition


def _definitions(module: ModuleType) -> Iterator[MetricDefinition]:
    for value in vars(module).values():
        if isinstance(value, MetricDefinition):
            yield value
        elif isinstance(value, Mapping):
            yield from (one for one in value.values() if isinstance(one, MetricDefinition))


DEFINITIONS: Final[Mapping[str, MetricDefinition]] = {
    definition.name: definition
    for module in (
        connect_metrics,
        coordinator_metrics,
        task_metrics,
        mirror_metrics,
        client_metrics,
        process_metrics,
        sparkmirror_metrics,
    )
    for definition in _definitions(module)
}
