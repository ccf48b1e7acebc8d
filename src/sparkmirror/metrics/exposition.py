"""Figures as text: Prometheus' own format, or OpenMetrics if the client asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from sparkmirror.metrics.definition import Figure, MetricDefinition
from sparkmirror.metrics.duplicate_series import merge_figures

_encode_openmetrics: Callable[[Collector], bytes] = openmetrics.generate_latest
_OPENMETRICS = "application/openmetrics-text"
_PLAIN_TEXT = "text/plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """All figures as one text."""

    content: bytes
    media_type: str


def render(figures: Iterable[Figure], accept: str = "") -> Exposition:
    """Return the figures in the format that an Accept header asks for."""
    if prefers_openmetrics(accept):
        content = _encode_openmetrics(_Figures(figures))
        return Exposition(content=content, media_type=openmetrics.CONTENT_TYPE_LATEST)
    return Exposition(
        content=generate_latest(_Figures(figures)), media_type=CONTENT_TYPE_PLAIN_0_0_4
    )


def prefers_openmetrics(accept: str) -> bool:
    """Whether an Accept header names OpenMetrics, and not with less weight than plain text."""
    weights: dict[str, float] = {}
    for named in accept.split(","):
        media_type, *parameters = (part.strip().lower() for part in named.split(";"))
        weight = min(map(_weight, parameters), default=1.0)
        weights[media_type] = max(weights.get(media_type, 0.0), weight)
    wanted = weights.get(_OPENMETRICS, 0.0)
    return wanted > 0 and wanted >= weights.get(_PLAIN_TEXT, 0.0)


def _weight(parameter: str) -> float:
    """Return the weight that a parameter gives; 1 without one, 0 for one that is no number."""
    name, _, value = parameter.partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


class _Figures(Collector):
    """The figures of one scrape, grouped by metric. No series is there twice."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._metrics: dict[str, Metric] = {}
        for figure in merge_figures(figures):
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
