"""The top level of a dedicated file (mm2.properties).

Only what the file itself declares. Everything else in it belongs to a cluster (`A.`), to a flow
(`A->B.`), to the connectors or to the workers, and is described there.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import ValidList
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.client.common_client_configs import SECURITY_PROTOCOL
from sparkmirror.config.tables.client.sasl import CLIENT_SASL
from sparkmirror.config.tables.client.ssl import CLIENT_SSL
from sparkmirror.config.tables.mirror_connector import CONFIG_PROVIDERS_KEY
from sparkmirror.config.tables.rest_server import REST_SERVER

DEDICATED: Final = (
    ConfigDef(
        ConfigKey(
            "clusters",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Aliases of all clusters in the file. Every ordered pair of them is a possible flow.",
            validator=ValidList(),
        ),
        ConfigKey(
            "dedicated.mode.enable.internal.rest",
            Type.BOOLEAN,
            False,
            HIGH,
            "Whether several nodes with this file share the work of each flow and reach each other "
            "at their listeners. Without it a flow belongs to one node. The REST API is always on.",
        ),
        CONFIG_PROVIDERS_KEY,
        SECURITY_PROTOCOL,
    )
    + CLIENT_SSL
    + CLIENT_SASL
    + REST_SERVER
)
