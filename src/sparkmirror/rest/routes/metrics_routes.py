"""The routes of the metrics: /metrics, and on a listener of its own also /."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.exposition import render
from sparkmirror.rest.http.call import TEXT, Call, Reply
from sparkmirror.rest.http.router import Route

PATH = "/metrics"


def metrics_routes(get_figures: Callable[[], Iterable[Figure]]) -> tuple[Route, ...]:
    """The route /metrics: Prometheus text, or OpenMetrics if the client asks for it."""

    def metrics(call: Call) -> Reply:
        exposition = render(get_figures(), call.headers.get("accept", ""))
        return Reply(status=200, content=exposition.content, media_type=exposition.media_type)

    return (Route(method="GET", path=PATH, handler=metrics, urgent=True, produces_json=False),)


def metrics_listener_routes(get_figures: Callable[[], Iterable[Figure]]) -> tuple[Route, ...]:
    """The routes of a listener for metrics. Old probes ask for / and want 200."""

    def root(_call: Call) -> Reply:
        return Reply(status=200, content=b"The metrics are at /metrics\n", media_type=TEXT)

    return (
        Route(method="GET", path="/", handler=root, urgent=True, produces_json=False),
        *metrics_routes(get_figures),
    )
