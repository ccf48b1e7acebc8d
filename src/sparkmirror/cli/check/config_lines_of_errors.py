"""Adds to checks where a file has the keys that an error of a connection names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparkmirror.cli.check.clients_and_rights import WORKER_CLUSTER
from sparkmirror.cli.check.connection_check import ConnectionCheck
from sparkmirror.cli.check.needed_rights import WORKER_PRODUCER
from sparkmirror.config.client_configs import WORKER_PRODUCER_PREFIX
from sparkmirror.config.files.client_config_line_numbers import ClientConfigLineNumbers
from sparkmirror.config.files.properties import Properties


def add_written_keys(checks: Iterable[ConnectionCheck], file: Properties) -> list[ConnectionCheck]:
    """Return the checks, those with an error with remarks that name keys and lines of the file."""
    keys = ClientConfigLineNumbers.of_file(file)
    return [_with_keys(check, keys) for check in checks]


def _with_keys(check: ConnectionCheck, keys: ClientConfigLineNumbers) -> ConnectionCheck:
    brokers = check.facts.brokers if check.facts else ()
    errors = [check.error, *(str(broker.error) for broker in brokers if broker.error)]
    prefix = _prefix(check)
    remarks = [line for error in errors for line in keys.locations(check.cluster, error, prefix)]
    return replace(check, remarks=(*check.remarks, *dict.fromkeys(remarks)))


def _prefix(check: ConnectionCheck) -> str | None:
    """Return the prefix of the clients' keys in a worker's file; None if they are not in it."""
    if check.cluster == WORKER_CLUSTER:
        return ""
    is_worker_producer = any(client.endswith(WORKER_PRODUCER) for client in check.clients)
    return WORKER_PRODUCER_PREFIX if is_worker_producer else None
