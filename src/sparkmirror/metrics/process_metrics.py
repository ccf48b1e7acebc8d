"""The figures of this process, with the names that every exporter of Prometheus has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.process_collector import ProcessCollector

from sparkmirror.metrics.definition import Figure, MetricDefinition, MetricType

PROCESS_CPU: Final = MetricDefinition(
    name="process_cpu_seconds_total",
    doc="Processor time of the worker process, without Spark's processes.",
    type=MetricType.COUNTER,
)
PROCESS_MEMORY: Final = MetricDefinition(
    name="process_resident_memory_bytes",
    doc="Memory of the worker process, without Spark's processes.",
)
PROCESS_START: Final = MetricDefinition(
    name="process_start_time_seconds", doc="When the worker process started, in Unix time."
)
PROCESS_FILES: Final = MetricDefinition(
    name="process_open_fds", doc="Files and sockets that the worker process has open."
)
_BY_NAME: Final = {
    definition.name: definition
    for definition in (PROCESS_CPU, PROCESS_MEMORY, PROCESS_START, PROCESS_FILES)
}


class ProcessFigures:
    """Reads /proc. Where there is none, the figures are absent."""

    def __init__(self) -> None:
        self._collector = ProcessCollector(registry=None)

    def figures(self) -> Iterator[Figure]:
        """Yield the figures of this moment."""
        for family in self._collector.collect():
            for sample in family.samples:
                definition = _BY_NAME.get(sample.name)
                if definition is not None:
                    yield Figure(definition=definition, value=sample.value)
