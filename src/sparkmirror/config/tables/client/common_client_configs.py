"""The keys of any Kafka client: addresses and security of a cluster.

Also the table of MirrorMaker 2's client library, which adds the names of topics.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, MEDIUM, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, ValidList
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.client.sasl import CLIENT_SASL
from sparkmirror.config.tables.client.ssl import CLIENT_SSL
from sparkmirror.config.tables.naming import FORWARDING_ADMIN_KEY, NAMING

BOOTSTRAP_SERVERS: Final = ConfigKey(
    "bootstrap.servers",
    Type.LIST,
    REQUIRED,
    HIGH,
    "Some brokers of the cluster, as host:port. One would do; name two or three, so that a broker "
    "may be down when the mirror starts.",
    validator=ValidList(may_be_empty=False),
)

SECURITY_PROTOCOL: Final = ConfigKey(
    "security.protocol",
    Type.STRING,
    "PLAINTEXT",
    MEDIUM,
    "How to talk to the brokers: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Must match the "
    "listener that bootstrap.servers points at.",
    validator=CaseInsensitiveValidString(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")),
)

_SECURITY: Final = ConfigDef(SECURITY_PROTOCOL) + CLIENT_SSL + CLIENT_SASL

CLIENT: Final = ConfigDef(BOOTSTRAP_SERVERS) + _SECURITY

CLIENT_SECURITY_NAMES: Final[tuple[str, ...]] = CLIENT.names
"""What is copied from a cluster's properties to each of its clients, in Kafka's order."""

MIRROR_CLIENT: Final = (
    ConfigDef(BOOTSTRAP_SERVERS) + NAMING + ConfigDef(FORWARDING_ADMIN_KEY) + _SECURITY
)
