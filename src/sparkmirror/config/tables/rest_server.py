"""The REST server of a worker: its listeners and its advertised address."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import ListenersValidator, ValidList
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.definition.worker_validators import ResponseHttpHeadersValidator
from sparkmirror.config.tables.client.ssl import REST_CLIENT_AUTH

REST_SERVER: Final = ConfigDef(
    ConfigKey(
        "listeners",
        Type.LIST,
        ("http://:8083",),
        LOW,
        "Addresses the REST API listens on, as http:// or https:// URLs; without a host it "
        "listens everywhere. Name a host to keep the API off other networks.",
        validator=ListenersValidator(),
    ),
    ConfigKey(
        "rest.advertised.host.name",
        Type.STRING,
        None,
        LOW,
        "Host name by which other workers reach this one; it is also in statuses. Set it where the "
        "machine's own name is of no use to others, as in containers.",
    ),
    ConfigKey(
        "rest.advertised.port",
        Type.INT,
        None,
        LOW,
        "Port at which other workers reach this one; it is also in statuses. Set it where ports "
        "are mapped.",
    ),
    ConfigKey(
        "rest.advertised.listener",
        Type.STRING,
        None,
        LOW,
        "At which listener other workers reach this one, http or https, if there are both.",
    ),
    ConfigKey(
        "access.control.allow.origin",
        Type.STRING,
        "",
        LOW,
        "Web origin whose pages may call the REST API from a browser (CORS); empty allows none, "
        "* allows all.",
    ),
    ConfigKey(
        "access.control.allow.methods",
        Type.STRING,
        "",
        LOW,
        "HTTP methods such pages may use. Empty means GET, POST and HEAD.",
    ),
    ConfigKey(
        "response.http.headers.config",
        Type.STRING,
        "",
        LOW,
        "Headers to put on every answer: rules [action] [name]:[value] separated by commas, the "
        "action being set, add, setDate or addDate.",
        validator=ResponseHttpHeadersValidator(),
    ),
    REST_CLIENT_AUTH,
)

WORKER_REST: Final = REST_SERVER + ConfigDef(
    ConfigKey(
        "rest.extension.classes",
        Type.LIST,
        (),
        LOW,
        "Extensions of the REST API. BasicAuthSecurityRestExtension is built in; any other is "
        "refused.",
        validator=ValidList(),
    ),
    ConfigKey(
        "admin.listeners",
        Type.LIST,
        None,
        LOW,
        "Addresses the endpoints under /admin listen on. Left out, they share the listeners; set "
        "to nothing, they are switched off.",
        validator=ValidList(may_be_null=True),
    ),
)
