"""The keys of a distributed Connect worker: its group and exactly-once support."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import (
    HIGH,
    LOW,
    MEDIUM,
    REQUIRED,
    ConfigDef,
    ConfigKey,
)
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, Range
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.definition.worker_validators import (
    ConnectProtocolValidator,
    MacAlgorithmListValidator,
    MacAlgorithmValidator,
)
from sparkmirror.config.tables.client.common_client_configs import SECURITY_PROTOCOL
from sparkmirror.config.tables.client.sasl import CLIENT_SASL
from sparkmirror.config.tables.client.ssl import CLIENT_SSL
from sparkmirror.config.tables.client.worker_network import METADATA_RECOVERY, NETWORK
from sparkmirror.config.tables.no_effect_reasons import (
    OTHER_GROUP_PROTOCOL,
)
from sparkmirror.config.tables.rest_server import WORKER_REST
from sparkmirror.config.tables.storage_topics import INTERNAL_TOPICS
from sparkmirror.config.tables.worker import WORKER, WORKER_TRACKING

_MAX_INT: Final = 2**31 - 1

_GROUP: Final = ConfigDef(
    ConfigKey(
        "group.id",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Name of the worker's group. Workers with the same group id share its connectors and "
        "tasks. It must differ from every consumer group.",
    ),
    ConfigKey(
        "session.timeout.ms",
        Type.INT,
        10000,
        HIGH,
        "After how many milliseconds without heartbeats a worker is no member of its group any "
        "more. Then other workers run its connectors and tasks.",
    ),
    ConfigKey(
        "rebalance.timeout.ms",
        Type.INT,
        60000,
        HIGH,
        "How many milliseconds a rebalance of the group waits for a worker that stops connectors "
        "and tasks.",
    ),
    ConfigKey(
        "heartbeat.interval.ms",
        Type.INT,
        3000,
        HIGH,
        "How often a worker sends a heartbeat to its group. It learns of a rebalance with it. "
        "Without this key 500 milliseconds, more often than Connect.",
    ),
    ConfigKey(
        "exactly.once.source.support",
        Type.STRING,
        "disabled",
        HIGH,
        "Whether connectors copy exactly once, with transactions: disabled, preparing or enabled. "
        "With preparing nothing changes yet.",
        validator=CaseInsensitiveValidString(("DISABLED", "ENABLED", "PREPARING")),
    ),
)

_SYNC: Final = ConfigDef(
    ConfigKey(
        "worker.sync.timeout.ms",
        Type.INT,
        3000,
        MEDIUM,
        OTHER_GROUP_PROTOCOL,
    ),
    ConfigKey(
        "worker.unsync.backoff.ms",
        Type.INT,
        300000,
        MEDIUM,
        OTHER_GROUP_PROTOCOL,
    ),
)

_INTER_WORKER: Final = ConfigDef(
    ConfigKey(
        "connect.protocol",
        Type.STRING,
        "sessioned",
        LOW,
        OTHER_GROUP_PROTOCOL,
        validator=ConnectProtocolValidator(),
    ),
    ConfigKey(
        "scheduled.rebalance.max.delay.ms",
        Type.INT,
        300000,
        LOW,
        "How many milliseconds the connectors and tasks of a lost worker wait for its return "
        "before others run them. Without this key 0: other workers run them at once, unlike "
        "Connect.",
        validator=Range(0, _MAX_INT),
    ),
    ConfigKey(
        "inter.worker.key.ttl.ms",
        Type.INT,
        3600000,
        LOW,
        "After how many milliseconds the leader of the group writes another session key; 0: never.",
        validator=Range(0, _MAX_INT),
    ),
    ConfigKey(
        "inter.worker.key.generation.algorithm",
        Type.STRING,
        "HmacSHA256",
        LOW,
        "Algorithm of the session keys that the leader writes.",
        validator=MacAlgorithmValidator("Any KeyGenerator algorithm supported by the worker JVM"),
    ),
    ConfigKey(
        "inter.worker.key.size",
        Type.INT,
        None,
        LOW,
        "Size of the session keys in bits; without it the default of their algorithm.",
    ),
    ConfigKey(
        "inter.worker.signature.algorithm",
        Type.STRING,
        "HmacSHA256",
        LOW,
        "Algorithm with which this worker signs requests to other workers of its group. It is one "
        "of inter.worker.verification.algorithms.",
        validator=MacAlgorithmValidator("Any MAC algorithm supported by the worker JVM"),
    ),
    ConfigKey(
        "inter.worker.verification.algorithms",
        Type.LIST,
        ("HmacSHA256",),
        LOW,
        "Algorithms of the signatures that this worker accepts from other workers.",
        validator=MacAlgorithmListValidator(
            "A list of one or more MAC algorithms, each supported by the worker JVM"
        ),
    ),
)

DISTRIBUTED: Final = (
    WORKER
    + CLIENT_SSL
    + WORKER_TRACKING
    + WORKER_REST
    + _GROUP
    + NETWORK
    + ConfigDef(SECURITY_PROTOCOL)
    + CLIENT_SASL
    + _SYNC
    + INTERNAL_TOPICS
    + _INTER_WORKER
    + METADATA_RECOVERY
)
