"""The keys of a worker's connections to its cluster."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, Range
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.no_effect_reasons import (
    JAVA_CLIENT,
)

NETWORK: Final = ConfigDef(
    ConfigKey(
        "metadata.max.age.ms",
        Type.LONG,
        300000,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "client.id",
        Type.STRING,
        "",
        LOW,
        "Name of the worker in its log lines.",
    ),
    ConfigKey(
        "send.buffer.bytes",
        Type.INT,
        131072,
        MEDIUM,
        JAVA_CLIENT,
        validator=Range(-1),
    ),
    ConfigKey(
        "receive.buffer.bytes",
        Type.INT,
        32768,
        MEDIUM,
        JAVA_CLIENT,
        validator=Range(-1),
    ),
    ConfigKey(
        "reconnect.backoff.ms",
        Type.LONG,
        50,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "reconnect.backoff.max.ms",
        Type.LONG,
        1000,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        Type.LONG,
        10000,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        Type.LONG,
        30000,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "retry.backoff.ms",
        Type.LONG,
        100,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "retry.backoff.max.ms",
        Type.LONG,
        1000,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "request.timeout.ms",
        Type.INT,
        40000,
        MEDIUM,
        JAVA_CLIENT,
        validator=Range(0),
    ),
    ConfigKey(
        "connections.max.idle.ms",
        Type.LONG,
        540000,
        MEDIUM,
        JAVA_CLIENT,
    ),
)

METADATA_RECOVERY: Final = ConfigDef(
    ConfigKey(
        "metadata.recovery.strategy",
        Type.STRING,
        "rebootstrap",
        LOW,
        JAVA_CLIENT,
        validator=CaseInsensitiveValidString(("REBOOTSTRAP", "NONE")),
    ),
    ConfigKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        Type.LONG,
        300000,
        LOW,
        JAVA_CLIENT,
        validator=Range(0),
    ),
)
