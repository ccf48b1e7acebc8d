"""What a worker that shares its work with others reads: the group and its safety."""

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
from sparkmirror.config.tables.clients import SECURITY_PROTOCOL
from sparkmirror.config.tables.internal_topics import INTERNAL_TOPICS
from sparkmirror.config.tables.network import METADATA_RECOVERY, NETWORK
from sparkmirror.config.tables.rest_server import WORKER_REST
from sparkmirror.config.tables.sasl import CLIENT_SASL
from sparkmirror.config.tables.ssl import CLIENT_SSL
from sparkmirror.config.tables.worker import WORKER, WORKER_TRACKING

_MAX_INT: Final = 2**31 - 1

_GROUP: Final = ConfigDef(
    ConfigKey(
        "group.id",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Name of the group of workers. All workers with the same name on the same cluster share "
        "the connectors; it must differ from every consumer group.",
    ),
    ConfigKey(
        "session.timeout.ms",
        Type.INT,
        10000,
        HIGH,
        "After how long without a sign of life a worker counts as gone, in milliseconds.",
    ),
    ConfigKey(
        "rebalance.timeout.ms",
        Type.INT,
        60000,
        HIGH,
        "How long a worker may take to hand over its work when the group changes, in milliseconds.",
    ),
    ConfigKey(
        "heartbeat.interval.ms",
        Type.INT,
        3000,
        HIGH,
        "How often a worker tells the group that it lives, in milliseconds. At most a third of "
        "session.timeout.ms.",
    ),
    ConfigKey(
        "exactly.once.source.support",
        Type.STRING,
        "disabled",
        HIGH,
        "Whether connectors copy exactly once, with transactions: disabled, preparing or "
        "enabled. To turn it on, take all workers to preparing first, then to enabled.",
        validator=CaseInsensitiveValidString(("DISABLED", "ENABLED", "PREPARING")),
    ),
)

_SYNC: Final = ConfigDef(
    ConfigKey(
        "worker.sync.timeout.ms",
        Type.INT,
        3000,
        MEDIUM,
        "How long a worker that lags behind the others' configs tries to catch up before it "
        "leaves the group, in milliseconds.",
    ),
    ConfigKey(
        "worker.unsync.backoff.ms",
        Type.INT,
        300000,
        MEDIUM,
        "How long such a worker stays away before it joins again, in milliseconds.",
    ),
)

_INTER_WORKER: Final = ConfigDef(
    ConfigKey(
        "connect.protocol",
        Type.STRING,
        "sessioned",
        LOW,
        "How workers agree on who does what: sessioned (signed requests between workers), "
        "compatible or eager. Change it only for a group with very old workers.",
        validator=ConnectProtocolValidator(),
    ),
    ConfigKey(
        "scheduled.rebalance.max.delay.ms",
        Type.INT,
        300000,
        LOW,
        "How long the work of a worker that has gone waits for its return before others take it "
        "over, in milliseconds. Lower it for faster failover.",
        validator=Range(0, _MAX_INT),
    ),
    ConfigKey(
        "inter.worker.key.ttl.ms",
        Type.INT,
        3600000,
        LOW,
        "After how long the key that signs requests between workers is replaced, in milliseconds.",
        validator=Range(0, _MAX_INT),
    ),
    ConfigKey(
        "inter.worker.key.generation.algorithm",
        Type.STRING,
        "HmacSHA256",
        LOW,
        "Algorithm that makes such keys.",
        validator=MacAlgorithmValidator("Any KeyGenerator algorithm supported by the worker JVM"),
    ),
    ConfigKey(
        "inter.worker.key.size",
        Type.INT,
        None,
        LOW,
        "Size of such keys in bits. Left out, the algorithm's own.",
    ),
    ConfigKey(
        "inter.worker.signature.algorithm",
        Type.STRING,
        "HmacSHA256",
        LOW,
        "Algorithm that signs requests between workers.",
        validator=MacAlgorithmValidator("Any MAC algorithm supported by the worker JVM"),
    ),
    ConfigKey(
        "inter.worker.verification.algorithms",
        Type.LIST,
        ("HmacSHA256",),
        LOW,
        "Algorithms whose signatures are accepted. Must contain the one that the others sign "
        "with; name two while a group is moved from one to another.",
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
