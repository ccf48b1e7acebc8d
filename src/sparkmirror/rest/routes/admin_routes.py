"""Everything under /admin: the levels of loggers. May have listeners of its own, or none."""

from __future__ import annotations

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.errors import BadRequest
from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.routes import json_answers, request_bodies


def admin_routes(herding: Herder) -> tuple[Route, ...]:
    """Make the routes that ask this herding about its loggers."""

    def loggers(_call: Call) -> Reply:
        levels = herding.all_logger_levels()
        return json_reply(
            {name: json_answers.logger_level(level) for name, level in levels.items()}
        )

    def logger(call: Call) -> Reply:
        return json_reply(
            json_answers.logger_level(herding.logger_level(call.path_parameters["logger"]))
        )

    def set_level(call: Call) -> Reply:
        level = request_bodies.read_level(call.body)
        if level is None:
            raise BadRequest("Desired 'level' parameter was not specified in request.")
        everywhere = (call.parameter("scope") or "").lower() == "cluster"
        changed = herding.set_logger_level(
            call.path_parameters["logger"], level, everywhere=everywhere
        )
        return Reply(status=204) if everywhere else json_reply(changed)

    one = "/admin/loggers/{logger}"
    return (
        Route(method="GET", path="/admin/loggers", handler=loggers),
        Route(method="GET", path=one, handler=logger),
        Route(method="PUT", path=one, handler=set_level, reads_body=True),
    )
