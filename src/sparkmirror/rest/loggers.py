"""Everything under /admin: the levels of loggers. May have listeners of its own, or none."""

from __future__ import annotations

from sparkmirror.connect.herding import Herding
from sparkmirror.errors import BadRequest
from sparkmirror.rest import bodies, shapes
from sparkmirror.rest.exchange import Call, Reply, json_reply
from sparkmirror.rest.route import Route


def admin_routes(herding: Herding) -> tuple[Route, ...]:
    """Make the routes that ask this herding about its loggers."""

    def loggers(_call: Call) -> Reply:
        levels = herding.loggers()
        return json_reply({name: shapes.logger(level) for name, level in levels.items()})

    def logger(call: Call) -> Reply:
        return json_reply(shapes.logger(herding.logger(call.names["logger"])))

    def set_level(call: Call) -> Reply:
        level = bodies.read_level(call.body)
        if level is None:
            raise BadRequest("Desired 'level' parameter was not specified in request.")
        everywhere = (call.parameter("scope") or "").lower() == "cluster"
        changed = herding.set_logger(call.names["logger"], level, everywhere=everywhere)
        return Reply(status=204) if everywhere else json_reply(changed)

    one = "/admin/loggers/{logger}"
    return (
        Route(method="GET", path="/admin/loggers", handler=loggers),
        Route(method="GET", path=one, handler=logger),
        Route(method="PUT", path=one, handler=set_level, reads_body=True),
    )
