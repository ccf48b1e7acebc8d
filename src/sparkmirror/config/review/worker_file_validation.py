"""Everything that is wrong with the file of a Connect worker, found without starting anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.config.client_configs import ClientType
from sparkmirror.config.definition import override_policy
from sparkmirror.config.definition.override_policy import policy_faults
from sparkmirror.config.definition.value_types import ParsedValue
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
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.secrets.variables import redact_fault
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SPARK_PREFIX
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import ConfigError, ConfigFault

_LOCATION = "the worker"

_PREFIXES = (
    *(f"{kind}." for kind in ClientType),
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
"""Below these a worker reads keys that its table does not list."""


_NAMES = (*DISTRIBUTED.names, *PROCESS_ADDITIONS.names)
_KNOWN = frozenset({*_NAMES, *IGNORED_KEYS})


def validate_worker_file(worker: WorkerFile, findings: FindingsCollector) -> None:
    """Judge the file. Never raises on account of what it says."""
    faults: list[ConfigFault] = []
    try:
        worker.expand()
    except ConfigError as error:
        faults += error.faults
        worker = worker.lenient()
    # What could not be fetched cannot be judged.
    unfetched = frozenset(fault.key for fault in faults)
    expansion = worker.expand()
    faults += [
        redact_fault(fault, worker.raw, expansion.values)
        for fault in _faults(expansion.values)
        if fault.key not in unfetched
    ]
    for prefix in ("", *(f"{kind}." for kind in ClientType)):
        if prefix + jaas.SASL_JAAS_CONFIG not in unfetched:
            try:
                findings.add_notices(
                    login_module_notices(
                        _client_login_config(expansion.values, prefix),
                        prefix + jaas.SASL_JAAS_CONFIG,
                    )
                )
            except ConfigError as error:
                faults += [
                    ConfigFault(prefix + jaas.SASL_JAAS_CONFIG, fault.message)
                    for fault in error.faults
                ]
    for fault in faults:
        findings.add_error(
            _LOCATION, fault.key, worker.properties.lines.get(fault.key), fault.message
        )
    findings.add_notices(worker.notices)
    findings.add_notices(notice for notice in expansion.unresolved if notice.key not in unfetched)
    findings.add_notices(plain_text_secret_notices(worker.properties))
    findings.add_notices(
        repeated_item_notice(key, None)
        for key in DISTRIBUTED.keys_with_repeated_items(expansion.values)
    )
    findings.add_notices(_unused_key_notices(worker))


def _faults(config: Mapping[str, str]) -> Iterator[ConfigFault]:
    values = DISTRIBUTED.validate(config)
    for value in values:
        if value.errors:
            yield ConfigFault(value.name, value.errors[0])
    found = {value.name: value.value for value in values}
    yield from listener_faults(found)
    yield from PROCESS_ADDITIONS.faults(config)
    yield from address_faults(found[BOOTSTRAP_SERVERS_KEY])
    yield from policy_faults(str(found[override_policy.OVERRIDE_POLICY_KEY]))


def _client_login_config(config: Mapping[str, str], prefix: str) -> dict[str, ParsedValue]:
    """How a client of the worker logs in. Those with a prefix inherit nothing."""
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
