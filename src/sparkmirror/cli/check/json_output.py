"""The JSON output of `sparkmirror check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkmirror.cli.check.broker_checks import BrokerCheck
from sparkmirror.cli.check.connection_check import ConnectionCheck
from sparkmirror.cli.check.kafka_acls import kafka_acls_lines, operation_name
from sparkmirror.cli.check.rights_check import RightCheck


def report(checks: Sequence[ConnectionCheck]) -> dict[str, Any]:
    """Return all checks. Members without a value are null."""
    return {
        "good": all(check.is_good for check in checks),
        "connections": [_connection(check) for check in checks],
    }


def _connection(check: ConnectionCheck) -> dict[str, Any]:
    facts = check.facts
    return {
        "cluster": check.cluster,
        "bootstrap_servers": check.bootstrap_servers,
        "clients": list(check.clients),
        "login": check.login,
        "principal": check.principal,
        "good": check.is_good,
        "error": check.error or None,
        "remarks": list(check.remarks),
        "cluster_id": facts.cluster_id if facts else None,
        "clock_difference_s": facts.clock_difference_s if facts else None,
        "brokers": [_broker(broker) for broker in facts.brokers] if facts else [],
        "rights": [_right(right) for right in check.rights],
        "kafka_acls": kafka_acls_lines(
            check.bootstrap_servers, check.principal, [one.right for one in check.rights]
        ),
    }


def _broker(broker: BrokerCheck) -> dict[str, Any]:
    return {
        "address": str(broker.address),
        "is_bootstrap": broker.is_bootstrap,
        "error": str(broker.error) if broker.error else None,
        "release": broker.release or None,
        "round_trip_ms": None if broker.error else round(broker.round_trip_ms, 2),
        "tls_version": broker.tls.version if broker.tls else None,
        "certificate_not_after": broker.tls.certificate.get("notAfter") if broker.tls else None,
    }


def _right(check: RightCheck) -> dict[str, Any]:
    right = check.right
    return {
        "resource_type": right.resource.kind.value,
        "resource_name": right.resource.name,
        "is_prefix": right.resource.is_prefix,
        "operation": operation_name(right.operation),
        "purpose": right.purpose,
        "granted": check.is_granted,
    }
