"""The keys that Kafka does not have. No answer of Connect's REST API contains them.

Keys of a file that begin with `spark.` go to Spark unchanged.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import Range, ValidList, ValidString
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.definition.worker_validators import MetricsListenersValidator
from sparkmirror.config.tables.transform_additions import TRANSFORM_ADDITIONS

METRICS_LISTENER: Final = "sparkmirror.metrics.listener"
"""The key that opens a port for the metrics."""
SPARK_PREFIX: Final = "spark."
"""If a cluster has this alias, the prefix means the cluster."""

_COPYING: Final = ConfigDef(
    ConfigKey(
        "sparkmirror.on.loss",
        Type.STRING,
        "halt",
        MEDIUM,
        "What to do with a partition when the source has lost the records that come next: halt it "
        "until an operator decides, skip what is lost, or restart from its beginning.",
        validator=ValidString(("halt", "skip", "restart")),
    ),
    ConfigKey(
        "sparkmirror.on.existing",
        Type.STRING,
        "adopt",
        MEDIUM,
        "What to do with a partition that has no stored offset and whose remote partition holds "
        "records: adopt them, which searches the last one at the source and goes on behind it; "
        "append behind them from where auto.offset.reset says, as MirrorMaker 2 does; or halt the "
        "partition until an operator decides.",
        validator=ValidString(("adopt", "append", "halt")),
    ),
    ConfigKey(
        "sparkmirror.bytes.per.second",
        Type.LONG,
        0,
        LOW,
        "How much all tasks of the connector together may copy in a second; 0 means as much as "
        "they can.",
        validator=Range(0),
    ),
)
SOURCE_ADDITIONS: Final = _COPYING + TRANSFORM_ADDITIONS
"""What a source connector reads besides Kafka's keys."""

PROCESS_ADDITIONS: Final = ConfigDef(
    ConfigKey(
        "sparkmirror.receipts",
        Type.STRING,
        "",
        LOW,
        "Where receipts of what was copied are added as Parquet: a directory, or any path that "
        "Spark can write to. Empty: below the user's state directory.",
    ),
    ConfigKey(
        "sparkmirror.log.dir",
        Type.STRING,
        "",
        LOW,
        "Directory of the logs of Spark and of the driver processes. Empty: below the user's "
        "state directory.",
    ),
    ConfigKey(
        "sparkmirror.epoch.seconds",
        Type.DOUBLE,
        300.0,
        LOW,
        "How long an epoch lasts: one micro-batch of the streaming query, after which the "
        "receipts are added. The first one lasts 15 seconds at most.",
        validator=Range(0.001),
    ),
    ConfigKey(
        "sparkmirror.rest.bearer.tokens.file",
        Type.STRING,
        "",
        LOW,
        "File of bearer tokens for the REST API: lines name: token, or name: sha256:HASH. A "
        "changed file is read again within seconds. Empty: no token is asked for.",
    ),
    ConfigKey(
        METRICS_LISTENER,
        Type.LIST,
        (),
        LOW,
        "Addresses that serve /metrics and nothing else, as http:// or https:// URLs, for example "
        "http://0.0.0.0:9404. The REST API serves it too. Empty: only the REST API does.",
        validator=MetricsListenersValidator(),
    ),
    ConfigKey(
        "sparkmirror.metrics.detail",
        Type.STRING,
        "topic",
        LOW,
        "What has figures of its own in /metrics: each topic, or each partition.",
        validator=ValidString(("topic", "partition")),
    ),
    ConfigKey(
        "sparkmirror.metrics.names",
        Type.LIST,
        ("strimzi",),
        LOW,
        "The names and labels of Kafka's metrics in /metrics: as Strimzi's rules for the JMX "
        "exporter have them (strimzi), as the JMX exporter has them without rules (jmx), as AWS's "
        "workshop for MSK has them (aws). With several of them each figure has all these names.",
        validator=ValidList(valid_strings=("strimzi", "jmx", "aws"), may_be_empty=False),
    ),
    ConfigKey(
        "sparkmirror.metrics.max.series",
        Type.INT,
        10_000,
        LOW,
        "How many series one metric may have in /metrics. What is more is left out, and counted in "
        "sparkmirror_metrics_left_out_series.",
        validator=Range(1),
    ),
    ConfigKey(
        "sparkmirror.oauthbearer.allowed.urls",
        Type.LIST,
        (),
        MEDIUM,
        "The token endpoints that OAUTHBEARER logins of this process may use, of its own clients "
        "and of connectors. Empty: none but those that KAFKA_OPTS names in Kafka's own system "
        "property.",
    ),
    ConfigKey(
        "sparkmirror.oauthbearer.allowed.files",
        Type.LIST,
        (),
        MEDIUM,
        "The files that OAUTHBEARER logins of this process may read: tokens, assertions, private "
        "keys, templates. Empty: none but those that KAFKA_OPTS names.",
    ),
    ConfigKey(
        "sparkmirror.oauthbearer.allowed.classes",
        Type.LIST,
        (),
        MEDIUM,
        "The Python classes, as module:Class, that sasl.login.callback.handler.class may name.",
    ),
    ConfigKey(
        "sparkmirror.plugin.modules",
        Type.LIST,
        (),
        MEDIUM,
        "The Python modules that policies, filters and functions of connectors may come from, "
        "given as module:Class or module:function. An entry stands for the module and all modules "
        "below it. A module that this file itself names needs no entry. Empty: no other module.",
    ),
)
"""What a process reads besides Kafka's keys: a worker, or all flows of a dedicated file."""
