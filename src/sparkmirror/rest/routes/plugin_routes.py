"""Everything under /connector-plugins: what a worker offers and which configs it takes."""

from __future__ import annotations

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.routes import request_bodies


def plugin_routes(herding: Herder) -> tuple[Route, ...]:
    """Make the routes that ask this herding about its plug-ins."""

    def plugins(call: Call) -> Reply:
        only = call.boolean_parameter("connectorsOnly", default=True)
        return json_reply(herding.plugins(connectors_only=only))

    def config(call: Call) -> Reply:
        version = call.parameter("version")
        return json_reply(herding.plugin_config(call.path_parameters["plugin"], version))

    def validate(call: Call) -> Reply:
        return json_reply(
            herding.validate_connector_config(
                call.path_parameters["plugin"], request_bodies.read_config(call.body)
            )
        )

    one = "/connector-plugins/{plugin}/config"
    return (
        Route(method="GET", path="/connector-plugins", handler=plugins),
        Route(method="GET", path=one, handler=config),
        Route(method="PUT", path=f"{one}/validate", handler=validate, reads_body=True),
    )
