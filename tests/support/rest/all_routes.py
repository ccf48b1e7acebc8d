"""All routes of a worker, as the REST server has them without admin listeners."""

from __future__ import annotations

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.routes.connector_routes import connector_routes
from sparkmirror.rest.routes.internal_routes import internal_routes
from sparkmirror.rest.routes.metrics_routes import metrics_routes
from sparkmirror.rest.routes.openapi_routes import with_openapi_route
from sparkmirror.rest.routes.partition_event_and_group_routes import monitoring_routes
from sparkmirror.rest.routes.worker_routes import admin_routes, plugin_routes, worker_routes
from sparkmirror.rest.worker_group_access import NO_GROUP
from sparkmirror.worker.connector_progress import WorkerMonitor


def public_routes(herder: Herder) -> tuple[Route, ...]:
    """The routes for operators: without those that only workers call."""
    return tuple(route for route in all_routes(herder) if not route.signed)


def all_routes(herder: Herder) -> tuple[Route, ...]:
    """All routes."""
    return with_openapi_route(
        [
            *worker_routes(herder),
            *metrics_routes(lambda: ()),
            *connector_routes(herder),
            *plugin_routes(herder),
            *admin_routes(herder),
            *internal_routes({None: NO_GROUP}, WorkerMonitor()),
            *monitoring_routes(herder, WorkerMonitor(), {None: NO_GROUP}),
        ],
        basic=False,
        bearer=False,
    )
