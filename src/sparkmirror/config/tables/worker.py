"""The keys of any Connect worker: converters, flushing, metrics, override policy."""

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
from sparkmirror.config.definition.java_classes import SIMPLE_HEADER_CONVERTER
from sparkmirror.config.definition.validators import (
    CaseInsensitiveValidString,
    Range,
    ValidList,
    ValidString,
)
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.client.common_client_configs import BOOTSTRAP_SERVERS
from sparkmirror.config.tables.mirror_connector import CONFIG_PROVIDERS_KEY, METRIC_REPORTERS
from sparkmirror.config.tables.no_effect_reasons import (
    BYTES,
    JAVA_CLIENT,
    METRICS,
    ONE_VERSION,
    TOPIC_CREATION,
)

_CONVERTERS: Final = ConfigDef(
    BOOTSTRAP_SERVERS,
    ConfigKey(
        "client.dns.lookup",
        Type.STRING,
        "use_all_dns_ips",
        MEDIUM,
        JAVA_CLIENT,
        validator=ValidString(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
    ),
    ConfigKey(
        "key.converter",
        Type.CLASS,
        REQUIRED,
        HIGH,
        BYTES,
    ),
    ConfigKey("key.converter.plugin.version", Type.STRING, None, LOW, ONE_VERSION),
    ConfigKey(
        "value.converter",
        Type.CLASS,
        REQUIRED,
        HIGH,
        BYTES,
    ),
    ConfigKey("value.converter.plugin.version", Type.STRING, None, LOW, ONE_VERSION),
)

_RUNTIME: Final = ConfigDef(
    ConfigKey(
        "task.shutdown.graceful.timeout.ms",
        Type.LONG,
        5000,
        LOW,
        "How long tasks may take to finish when the worker stops, in milliseconds, all together.",
    ),
    ConfigKey(
        "offset.flush.interval.ms",
        Type.LONG,
        60000,
        LOW,
        "How often positions are stored, in milliseconds. Lower it to have less to compare after "
        "a crash.",
    ),
    ConfigKey(
        "offset.flush.timeout.ms",
        Type.LONG,
        5000,
        LOW,
        "No effect here: positions are stored in the background, and no task waits for it.",
    ),
    ConfigKey(
        "plugin.path",
        Type.LIST,
        None,
        LOW,
        "Folders with Java plug-ins. Accepted and ignored: all that a mirror needs is built in.",
        validator=ValidList(may_be_null=True),
    ),
    ConfigKey(
        "plugin.discovery",
        Type.STRING,
        "hybrid_warn",
        LOW,
        "How Java plug-ins would be found in plugin.path. Accepted and ignored.",
        validator=CaseInsensitiveValidString(
            ("ONLY_SCAN", "SERVICE_LOAD", "HYBRID_WARN", "HYBRID_FAIL")
        ),
    ),
    ConfigKey(
        "metrics.sample.window.ms",
        Type.LONG,
        30000,
        LOW,
        "How long one sample of the rates in /metrics lasts, in milliseconds.",
        validator=Range(0),
    ),
    ConfigKey(
        "metrics.num.samples",
        Type.INT,
        2,
        LOW,
        "Over how many samples the rates in /metrics are computed.",
        validator=Range(1),
    ),
    ConfigKey(
        "metrics.recording.level",
        Type.STRING,
        "INFO",
        LOW,
        METRICS,
        validator=ValidString(("INFO", "DEBUG")),
    ),
    METRIC_REPORTERS,
    ConfigKey(
        "header.converter",
        Type.CLASS,
        SIMPLE_HEADER_CONVERTER,
        LOW,
        BYTES,
    ),
    ConfigKey("header.converter.plugin.version", Type.STRING, None, LOW, ONE_VERSION),
    CONFIG_PROVIDERS_KEY,
    ConfigKey(
        "connector.client.config.override.policy",
        Type.STRING,
        "All",
        MEDIUM,
        "Which producer.override.* keys a connector may set: All, None, Principal (credentials "
        "only) or Allowlist (those in connector.client.config.override.allowlist).",
    ),
    ConfigKey(
        "topic.creation.enable",
        Type.BOOLEAN,
        True,
        LOW,
        TOPIC_CREATION,
    ),
)

WORKER_TRACKING: Final = ConfigDef(
    ConfigKey(
        "topic.tracking.enable",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether the worker remembers which topics each connector has written to, for GET "
        "/connectors/<name>/topics.",
    ),
    ConfigKey(
        "topic.tracking.allow.reset",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether that memory may be cleared by request.",
    ),
)

WORKER: Final = _CONVERTERS + _RUNTIME
