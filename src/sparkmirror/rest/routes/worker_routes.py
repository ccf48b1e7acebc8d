"""Routes of the worker itself. Those of connectors are in `connector_routes` and
`partition_event_and_group_routes`.

/  /health              the worker
/connector-plugins      plug-ins and the validation of configs
/admin                  logger levels; may have its own listeners, or none
"""

from __future__ import annotations

from sparkmirror.connect.herder.herder import Herder, WorkerStatus
from sparkmirror.errors import BadRequest
from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.routes import json_answers, request_bodies

_HEALTH_STATUSES = {"healthy": 200, "degraded": 200, "starting": 503, "unhealthy": 500}
_UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests. "


# -- / and /health -----------------------------------------------------------------------------


def worker_routes(herder: Herder) -> tuple[Route, ...]:
    """The routes / and /health."""

    def root(_call: Call) -> Reply:
        worker = herder.server_info()
        return json_reply(
            {
                "version": worker.version,
                "commit": worker.commit,
                "kafka_cluster_id": worker.kafka_cluster_id,
            }
        )

    def health(_call: Call) -> Reply:
        return health_reply(herder.health())

    return (
        Route(method="GET", path="/", handler=root),
        Route(
            method="GET",
            path="/health",
            handler=health,
            urgent=True,
            timeout_reply=_unhealthy_reply,
        ),
    )


def health_reply(health: WorkerStatus) -> Reply:
    """The worker's health as JSON. The HTTP status says it too: probes read nothing else."""
    members = {"status": health.status, "message": health.message}
    return json_reply(members, _HEALTH_STATUSES[health.status])


def _unhealthy_reply(reason: str) -> Reply:
    return health_reply(WorkerStatus(status="unhealthy", message=_UNHEALTHY + reason))


# -- /connector-plugins ------------------------------------------------------------------------


def plugin_routes(herder: Herder) -> tuple[Route, ...]:
    """The routes under /connector-plugins."""

    def plugins(call: Call) -> Reply:
        connectors_only = call.boolean_parameter("connectorsOnly", default=True)
        return json_reply(herder.plugins(connectors_only=connectors_only))

    def config(call: Call) -> Reply:
        version = call.parameter("version")
        return json_reply(herder.plugin_config(call.path_parameters["plugin"], version))

    def validate(call: Call) -> Reply:
        return json_reply(
            herder.validate_connector_config(
                call.path_parameters["plugin"], request_bodies.read_config(call.body)
            )
        )

    config_path = "/connector-plugins/{plugin}/config"
    return (
        Route(method="GET", path="/connector-plugins", handler=plugins),
        Route(method="GET", path=config_path, handler=config),
        Route(method="PUT", path=f"{config_path}/validate", handler=validate, reads_body=True),
    )


# -- /admin ------------------------------------------------------------------------------------


def admin_routes(herder: Herder) -> tuple[Route, ...]:
    """The routes under /admin."""

    def loggers(_call: Call) -> Reply:
        levels = herder.all_logger_levels()
        return json_reply(
            {name: json_answers.logger_level(level) for name, level in levels.items()}
        )

    def logger(call: Call) -> Reply:
        return json_reply(
            json_answers.logger_level(herder.logger_level(call.path_parameters["logger"]))
        )

    def set_level(call: Call) -> Reply:
        level = request_bodies.read_level(call.body)
        if level is None:
            raise BadRequest("Desired 'level' parameter was not specified in request.")
        everywhere = (call.parameter("scope") or "").lower() == "cluster"
        changed = herder.set_logger_level(
            call.path_parameters["logger"], level, everywhere=everywhere
        )
        return Reply(status=204) if everywhere else json_reply(changed)

    logger_path = "/admin/loggers/{logger}"
    return (
        Route(method="GET", path="/admin/loggers", handler=loggers),
        Route(method="GET", path=logger_path, handler=logger),
        Route(method="PUT", path=logger_path, handler=set_level, reads_body=True),
    )
