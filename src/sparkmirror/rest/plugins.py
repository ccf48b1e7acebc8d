"""Everything under /connector-plugins: what a worker offers and which configs it takes."""

from __future__ import annotations

from sparkmirror.connect.herding import Herding
from sparkmirror.rest import bodies
from sparkmirror.rest.exchange import Call, Reply, json_reply
from sparkmirror.rest.route import Route


def plugin_routes(herding: Herding) -> tuple[Route, ...]:
    """Make the routes that ask this herding about its plug-ins."""

    def plugins(call: Call) -> Reply:
        only = call.flag("connectorsOnly", default=True)
        return json_reply(herding.plugins(connectors_only=only))

    def config(call: Call) -> Reply:
        version = call.parameter("version")
        return json_reply(herding.plugin_config(call.names["plugin"], version))

    def validate(call: Call) -> Reply:
        return json_reply(herding.validate(call.names["plugin"], bodies.read_config(call.body)))

    one = "/connector-plugins/{plugin}/config"
    return (
        Route(method="GET", path="/connector-plugins", handler=plugins),
        Route(method="GET", path=one, handler=config),
        Route(method="PUT", path=f"{one}/validate", handler=validate, reads_body=True),
    )
