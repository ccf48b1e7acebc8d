"""How a worker's own connections to its cluster behave."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, Range
from sparkmirror.config.definition.value_types import Type

NETWORK: Final = ConfigDef(
    ConfigKey(
        "metadata.max.age.ms",
        Type.LONG,
        300000,
        LOW,
        "After how long the list of brokers and leaders is fetched again although nothing has "
        "failed, in milliseconds.",
        validator=Range(0),
    ),
    ConfigKey(
        "client.id",
        Type.STRING,
        "",
        LOW,
        "Name under which the worker's clients appear in the brokers' logs, metrics and quotas.",
    ),
    ConfigKey(
        "send.buffer.bytes",
        Type.INT,
        131072,
        MEDIUM,
        "Size of the socket's send buffer in bytes; -1 leaves it to the operating system. Raise "
        "it for long distances.",
        validator=Range(-1),
    ),
    ConfigKey(
        "receive.buffer.bytes",
        Type.INT,
        32768,
        MEDIUM,
        "Size of the socket's receive buffer in bytes; -1 leaves it to the operating system. "
        "Raise it for long distances.",
        validator=Range(-1),
    ),
    ConfigKey(
        "reconnect.backoff.ms",
        Type.LONG,
        50,
        LOW,
        "First pause before connecting to a lost broker again, in milliseconds; it grows up to "
        "reconnect.backoff.max.ms.",
        validator=Range(0),
    ),
    ConfigKey(
        "reconnect.backoff.max.ms",
        Type.LONG,
        1000,
        LOW,
        "Longest pause between attempts to connect to a broker, in milliseconds.",
        validator=Range(0),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        Type.LONG,
        10000,
        LOW,
        "How long the first attempt to open a connection may take, in milliseconds; it grows up "
        "to socket.connection.setup.timeout.max.ms.",
        validator=Range(0),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        Type.LONG,
        30000,
        LOW,
        "How long an attempt to open a connection may take at most, in milliseconds.",
        validator=Range(0),
    ),
    ConfigKey(
        "retry.backoff.ms",
        Type.LONG,
        100,
        LOW,
        "First pause before a failed request is sent again, in milliseconds; it grows up to "
        "retry.backoff.max.ms.",
        validator=Range(0),
    ),
    ConfigKey(
        "retry.backoff.max.ms",
        Type.LONG,
        1000,
        LOW,
        "Longest pause before a failed request is sent again, in milliseconds.",
        validator=Range(0),
    ),
    ConfigKey(
        "request.timeout.ms",
        Type.INT,
        40000,
        MEDIUM,
        "How long to wait for the answer to a request before it counts as failed, in milliseconds.",
        validator=Range(0),
    ),
    ConfigKey(
        "connections.max.idle.ms",
        Type.LONG,
        540000,
        MEDIUM,
        "After how long an idle connection is closed, in milliseconds. Keep it below the limit "
        "of firewalls and load balancers on the way.",
    ),
)

METADATA_RECOVERY: Final = ConfigDef(
    ConfigKey(
        "metadata.recovery.strategy",
        Type.STRING,
        "rebootstrap",
        LOW,
        "What to do when none of the known brokers answers: rebootstrap starts anew with "
        "bootstrap.servers, none keeps trying the known ones.",
        validator=CaseInsensitiveValidString(("REBOOTSTRAP", "NONE")),
    ),
    ConfigKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        Type.LONG,
        300000,
        LOW,
        "After how long without an answer the rebootstrap strategy starts anew, in milliseconds.",
        validator=Range(0),
    ),
)
