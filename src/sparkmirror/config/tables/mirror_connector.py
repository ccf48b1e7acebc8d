"""The keys that the three connectors have in common."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, LOW, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.java_classes import JMX_REPORTER
from sparkmirror.config.definition.validators import ValidList, ValidString
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.client.common_client_configs import SECURITY_PROTOCOL
from sparkmirror.config.tables.client.sasl import CLIENT_SASL
from sparkmirror.config.tables.client.ssl import CLIENT_SSL
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.config.tables.naming import FORWARDING_ADMIN_KEY, NAMING
from sparkmirror.config.tables.no_effect_reasons import (
    METRICS,
)

METRIC_REPORTERS: Final = ConfigKey(
    "metric.reporters",
    Type.LIST,
    (JMX_REPORTER,),
    LOW,
    METRICS,
    validator=ValidList(),
)

CONFIG_PROVIDERS_KEY: Final = ConfigKey(
    "config.providers",
    Type.LIST,
    (),
    LOW,
    "Names of providers that ${name:path:key} variables may use; each needs "
    "config.providers.<name>.class. Use them to keep secrets out of the file.",
    validator=ValidList(),
)

OFFSET_SYNCS_LOCATION: Final = ConfigKey(
    "offset-syncs.topic.location",
    Type.STRING,
    "source",
    LOW,
    "Cluster on which the topic of offset syncs lies: source or target. Choose target if the "
    "mirror may not write to the source; say the same to source and checkpoint connector.",
    validator=ValidString(("source", "target")),
)

METRIC_NAMES: Final = ConfigKey(
    "metric.names.formats",
    Type.LIST,
    ("legacy",),
    LOW,
    METRICS,
    validator=ValidList(valid_strings=("legacy", "new"), may_be_empty=False),
)

TOPIC_FILTER_CLASS_DOC: Final = (
    "Filter that decides which topics belong to the flow. The default reads topics and "
    "topics.exclude."
)

TASK_INDEX: Final = ConfigKey(
    "task.index",
    Type.INT,
    None,
    LOW,
    "Number of the task within its connector, written by the connector and shown in client ids.",
)

_FLOW: Final = ConfigDef(
    ConfigKey(
        "enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether the connector does anything. In a dedicated file a flow is off until "
        "source->target.enabled=true says otherwise; the heartbeat connector does not look at it.",
    ),
    ConfigKey(
        "source.cluster.alias",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Short name of the cluster to copy from. It becomes part of the names of remote topics, "
        "so choose it once and for all.",
    ),
    ConfigKey(
        "target.cluster.alias",
        Type.STRING,
        "target",
        HIGH,
        "Short name of the cluster to copy to. It becomes part of the name of the topic of "
        "offset syncs.",
    ),
    ConfigKey(
        "admin.timeout.ms",
        Type.LONG,
        60000,
        LOW,
        "How long one round of looking at or changing a cluster may take, in milliseconds. Raise "
        "it for clusters with very many topics or groups.",
    ),
)

MIRROR: Final = (
    CONNECTOR
    + _FLOW
    + NAMING
    + ConfigDef(FORWARDING_ADMIN_KEY, METRIC_REPORTERS, SECURITY_PROTOCOL, CONFIG_PROVIDERS_KEY)
    + CLIENT_SSL
    + CLIENT_SASL
)
