"""Everything that is wrong with the file of a Connect worker, found without starting anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.config import addresses, jaas, overrides
from sparkmirror.config.addresses import address_faults
from sparkmirror.config.clients import ClientKind
from sparkmirror.config.findings import (
    Findings,
    inline_secrets,
    login_notices,
    repeated_item,
)
from sparkmirror.config.listeners import listener_faults
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.overrides import policy_faults
from sparkmirror.config.password import Password
from sparkmirror.config.retired import POINTLESS
from sparkmirror.config.suggestions import suggestion
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SPARK_PREFIX
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.value import Value
from sparkmirror.config.variables import conceal
from sparkmirror.config.worker_file import WorkerFile
from sparkmirror.errors import ConfigError, Fault

_PLACE = "the worker"

_PREFIXES = (
    *(f"{kind}." for kind in ClientKind),
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
_KNOWN = frozenset({*_NAMES, *POINTLESS})


def review_worker(worker: WorkerFile, findings: Findings) -> None:
    """Judge the file. Never raises on account of what it says."""
    faults: list[Fault] = []
    try:
        worker.expand()
    except ConfigError as error:
        faults += error.faults
        worker = worker.forgiving()
    # What could not be fetched cannot be judged.
    unfetched = frozenset(fault.key for fault in faults)
    expansion = worker.expand()
    faults += [
        conceal(fault, worker.raw, expansion.values)
        for fault in _faults(expansion.values)
        if fault.key not in unfetched
    ]
    for prefix in ("", *(f"{kind}." for kind in ClientKind)):
        if prefix + jaas.KEY not in unfetched:
            try:
                findings.add_notices(
                    login_notices(_client(expansion.values, prefix), prefix + jaas.KEY)
                )
            except ConfigError as error:
                faults += [Fault(prefix + jaas.KEY, fault.message) for fault in error.faults]
    for fault in faults:
        findings.add_objection(_PLACE, fault.key, worker.file.lines.get(fault.key), fault.message)
    findings.add_notices(worker.notices)
    findings.add_notices(notice for notice in expansion.unresolved if notice.key not in unfetched)
    findings.add_notices(inline_secrets(worker.file))
    findings.add_notices(
        repeated_item(key, None) for key in DISTRIBUTED.repeating(expansion.values)
    )
    findings.add_notices(_without_effect(worker))


def _faults(config: Mapping[str, str]) -> Iterator[Fault]:
    values = DISTRIBUTED.validate(config)
    for value in values:
        if value.errors:
            yield Fault(value.name, value.errors[0])
    found = {value.name: value.value for value in values}
    yield from listener_faults(found)
    yield from PROCESS_ADDITIONS.faults(config)
    yield from address_faults(found[addresses.KEY])
    yield from policy_faults(str(found[overrides.POLICY]))


def _client(config: Mapping[str, str], prefix: str) -> dict[str, Value]:
    """How a client of the worker logs in. Those with a prefix inherit nothing."""
    names = ("security.protocol", "sasl.mechanism")
    client: dict[str, Value] = {name: config.get(prefix + name) for name in names}
    if prefix + jaas.KEY in config:
        client[jaas.KEY] = Password(config[prefix + jaas.KEY])
    return client


def _without_effect(worker: WorkerFile) -> Iterator[Notice]:
    for key in worker.raw:
        if key in _KNOWN or key.startswith(_PREFIXES):
            continue
        meant = suggestion(key, _NAMES)
        advice = f"; did you mean {meant}?" if meant else ""
        message = f"has no effect: a worker does not read it{advice}"
        yield Notice(kind=NoticeKind.NO_EFFECT, message=message, key=key)
