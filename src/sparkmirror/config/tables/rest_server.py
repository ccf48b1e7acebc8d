"""The HTTP side of a worker: where it listens and what it tells others about itself."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition import LOW, ConfigDef, Key
from sparkmirror.config.tables.ssl import REST_CLIENT_AUTH
from sparkmirror.config.validators import ListOf, Urls
from sparkmirror.config.value import Type
from sparkmirror.config.worker_validators import HeaderRules

REST_SERVER: Final = ConfigDef(
    Key(
        "listeners",
        Type.LIST,
        ("http://:8083",),
        LOW,
        "Addresses the REST API listens on, as http:// or https:// URLs; without a host it "
        "listens everywhere. Name a host to keep the API off other networks.",
        validator=Urls(),
    ),
    Key(
        "rest.advertised.host.name",
        Type.STRING,
        None,
        LOW,
        "Host name that other workers shall call this one by. Set it where the machine's own "
        "name cannot be resolved by others, as in containers.",
    ),
    Key(
        "rest.advertised.port",
        Type.INT,
        None,
        LOW,
        "Port that other workers shall call. Set it where ports are mapped.",
    ),
    Key(
        "rest.advertised.listener",
        Type.STRING,
        None,
        LOW,
        "Which listener other workers shall call, http or https, if there are both.",
    ),
    Key(
        "access.control.allow.origin",
        Type.STRING,
        "",
        LOW,
        "Web origin whose pages may call the REST API from a browser (CORS); empty allows none, "
        "* allows all.",
    ),
    Key(
        "access.control.allow.methods",
        Type.STRING,
        "",
        LOW,
        "HTTP methods such pages may use. Empty means GET, POST and HEAD.",
    ),
    Key(
        "response.http.headers.config",
        Type.STRING,
        "",
        LOW,
        "Headers to put on every answer: rules [action] [name]:[value] separated by commas, the "
        "action being set, add, setDate or addDate.",
        validator=HeaderRules(),
    ),
    REST_CLIENT_AUTH,
)

WORKER_REST: Final = REST_SERVER + ConfigDef(
    Key(
        "rest.extension.classes",
        Type.LIST,
        (),
        LOW,
        "Java classes that would extend the REST API, such as the one for basic authentication.",
        validator=ListOf(),
    ),
    Key(
        "admin.listeners",
        Type.LIST,
        None,
        LOW,
        "Addresses the endpoints under /admin listen on. Left out, they share the listeners; set "
        "to nothing, they are switched off.",
        validator=ListOf(may_be_null=True),
    ),
)
