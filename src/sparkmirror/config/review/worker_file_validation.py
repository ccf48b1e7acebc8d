"""Finds the faults of a Connect worker's file, without a start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.config.client_configs import (
    WORKER_PRODUCER_PREFIX,
    ClientType,
    worker_producer_config,
)
from sparkmirror.config.definition import override_policy
from sparkmirror.config.definition.override_policy import policy_faults
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.event_hubs_defaults import event_hubs_notice
from sparkmirror.config.files.deprecated_keys import IGNORED_KEYS
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.review.addresses import (
    BOOTSTRAP_SERVERS_KEY,
    address_faults,
    listener_faults,
)
from sparkmirror.config.review.findings import (
    FindingsCollector,
    login_module_notices,
    plain_text_secret_notices,
    repeated_item_notice,
)
from sparkmirror.config.review.start_check_callbacks import StartCheckCallbacks, related_keys
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.secrets.variables import redact_fault
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SPARK_PREFIX
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import ConfigError, ConfigFault

_LOCATION = "the worker"

_PREFIXES = (
    *(f"{client_type}." for client_type in ClientType),
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "offset.storage.",
    "config.storage.",
    "status.storage.",
    "config.providers.",
    "listeners.https.",
    "admin.listeners.https.",
    "metrics.context.",
    SPARK_PREFIX,
)
"""A worker reads keys below these prefixes that its table does not list."""


_NAMES = (*DISTRIBUTED.names, *PROCESS_ADDITIONS.names)
_KNOWN = frozenset({*_NAMES, *IGNORED_KEYS})


def add_worker_file_findings(
    worker: WorkerFile, findings: FindingsCollector, checks: StartCheckCallbacks
) -> None:
    """Add all findings about the file. No content makes this raise."""
    faults: list[ConfigFault] = []
    try:
        worker.expand()
    except ConfigError as error:
        faults += error.faults
        worker = worker.lenient()
    # The values of these keys are unknown, so they cannot be checked.
    unresolved_keys = frozenset(fault.key for fault in faults)
    expansion = worker.expand()
    faults += [
        redact_fault(fault, worker.raw, expansion.values)
        for fault in _faults(expansion.values)
        if fault.key not in unresolved_keys
    ]
    for prefix in ("", *(f"{client_type}." for client_type in ClientType)):
        key = prefix + jaas.SASL_JAAS_CONFIG
        if key not in unresolved_keys:
            try:
                client = _client_login_config(expansion.values, prefix)
                findings.add_notices(login_module_notices(client, key))
            except ConfigError as error:
                faults += [ConfigFault(key, fault.message) for fault in error.faults]
    for fault in faults:
        findings.add_error(
            _LOCATION, fault.key, worker.properties.lines.get(fault.key), fault.message
        )
    for fault in _start_faults(worker, expansion.values, unresolved_keys, checks):
        if not findings.has_other_error(fault.key, fault.message):
            line = worker.properties.lines.get(fault.key)
            findings.add_error(_LOCATION, fault.key, line, fault.message)
    findings.add_notices(worker.notices)
    findings.add_notices(
        notice for notice in expansion.unresolved if notice.key not in unresolved_keys
    )
    findings.add_notices(plain_text_secret_notices(worker.properties.mapping))
    findings.add_notices(
        repeated_item_notice(key, None)
        for key in DISTRIBUTED.keys_with_repeated_items(expansion.values)
    )
    findings.add_notices(_unused_key_notices(worker))
    producer = worker_producer_config(expansion.values, {})
    if notice := event_hubs_notice(producer, expansion.values, BOOTSTRAP_SERVERS_KEY, None):
        findings.add_notices([notice])


def _faults(config: Mapping[str, str]) -> Iterator[ConfigFault]:
    values = DISTRIBUTED.validate(config)
    for value in values:
        if value.errors:
            yield ConfigFault(value.name, value.errors[0])
    parsed = {value.name: value.value for value in values}
    yield from listener_faults(parsed)
    yield from PROCESS_ADDITIONS.faults(config)
    yield from address_faults(parsed[BOOTSTRAP_SERVERS_KEY])
    yield from policy_faults(str(parsed[override_policy.OVERRIDE_POLICY_KEY]))


def _start_faults(
    worker: WorkerFile,
    expanded: Mapping[str, str],
    unresolved_keys: frozenset[str],
    checks: StartCheckCallbacks,
) -> Iterator[ConfigFault]:
    """The faults that a start would report, under the keys of the file."""
    producer = worker_producer_config(expanded, {})
    for prefix, properties in (("", expanded), (WORKER_PRODUCER_PREFIX, producer)):
        for fault in checks.client(properties):
            depends_on = related_keys(fault.key, properties)
            if unresolved_keys.isdisjoint(prefix + name for name in depends_on):
                own = prefix + fault.key
                # The worker's producer takes bootstrap.servers from the worker.
                is_inherited = fault.key == BOOTSTRAP_SERVERS_KEY and own not in expanded
                key = fault.key if is_inherited else own
                yield redact_fault(ConfigFault(key, fault.message), worker.raw, expanded)
    values = DISTRIBUTED.validate(expanded)
    if not any(value.errors for value in values):
        for fault in checks.rest({value.name: value.value for value in values}, expanded):
            if fault.key not in unresolved_keys:
                yield redact_fault(fault, worker.raw, expanded)


def _client_login_config(config: Mapping[str, str], prefix: str) -> dict[str, ParsedValue]:
    """The login settings of a client of the worker. A prefix inherits nothing."""
    names = ("security.protocol", "sasl.mechanism")
    client: dict[str, ParsedValue] = {name: config.get(prefix + name) for name in names}
    if prefix + jaas.SASL_JAAS_CONFIG in config:
        client[jaas.SASL_JAAS_CONFIG] = Password(config[prefix + jaas.SASL_JAAS_CONFIG])
    return client


def _unused_key_notices(worker: WorkerFile) -> Iterator[Notice]:
    for key in worker.raw:
        if key in _KNOWN or key.startswith(_PREFIXES):
            continue
        meant = closest_name(key, _NAMES)
        advice = f"; did you mean {meant}?" if meant else ""
        message = f"has no effect: a worker does not read it{advice}"
        yield Notice(kind=NoticeKind.NO_EFFECT, message=message, key=key)
