"""Figures as text: Prometheus' own format, or OpenMetrics if the client asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sparkmirror.metrics.definition import Figure, MetricDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """All figures as one text."""

    content: bytes
    media_type: str


def render(figures: Iterable[Figure], accept: str = "") -> Exposition:
    """Return the figures in the format that an Accept header asks for."""
    encode, media_type = choose_encoder(accept)
    return Exposition(content=encode(_Figures(figures)), media_type=media_type)


class _Figures(Collector):
    """The figures of one scrape, grouped by metric."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._metrics: dict[str, Metric] = {}
        for figure in figures:
            metric = self._find_metric(figure.definition)
            metric.add_sample(figure.definition.name, figure.labels, figure.value)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics in the order of their names."""
        yield from (self._metrics[name] for name in sorted(self._metrics))

    def _find_metric(self, definition: MetricDefinition) -> Metric:
        found = self._metrics.get(definition.name)
        if found is None:
            family = definition.name.removesuffix("_total")
            found = Metric(family, definition.doc, definition.type.value)
            self._metrics[definition.name] = found
        return found
