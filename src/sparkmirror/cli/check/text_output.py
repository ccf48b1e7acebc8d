"""The text output of `sparkmirror check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from sparkmirror.cli.check.broker_checks import BrokerCheck, ClusterConnectivity
from sparkmirror.cli.check.connection_check import ConnectionCheck
from sparkmirror.cli.check.kafka_acls import kafka_acls_lines, operation_name
from sparkmirror.cli.check.needed_rights import NeededRight
from sparkmirror.cli.check.principal import ANONYMOUS
from sparkmirror.wire.net.transport import TlsSession


def report_lines(checks: Sequence[ConnectionCheck]) -> Iterator[str]:
    """Yield a paragraph for each login, and one line with the result."""
    for check in checks:
        yield from _connection_lines(check)
        yield ""
    bad = sum(not check.is_good for check in checks)
    logins = f"{len(checks)} login{'s' if len(checks) != 1 else ''}"
    yield (
        f"{logins} checked: a start would succeed."
        if not bad
        else f"{logins} checked, {bad} with problems: a start would not copy everything."
    )


def acls_lines(checks: Sequence[ConnectionCheck]) -> Iterator[str]:
    """Yield the `kafka-acls.sh` lines for exactly the rights that the file needs."""
    for check in checks:
        rights = [one.right for one in check.rights]
        if not rights or check.principal == ANONYMOUS:
            continue
        yield f"# {check.cluster}: all that {check.principal} needs"
        yield from kafka_acls_lines(check.bootstrap_servers, check.principal, rights)


def _connection_lines(check: ConnectionCheck) -> Iterator[str]:
    mark = "ok" if check.is_good else "PROBLEM"
    yield f"{check.cluster}  [{mark}]  {check.bootstrap_servers}"
    yield from (f"  used by    {client}" for client in check.clients)
    if check.login:
        yield f"  login      {check.login}"
    if check.facts is not None:
        yield from _fact_lines(check.facts)
    if check.error:
        yield f"  error      {check.error}"
    yield from (f"  remark     {remark}" for remark in check.remarks)
    if check.rights:
        yield from _rights_lines(check)


def _fact_lines(facts: ClusterConnectivity) -> Iterator[str]:
    for broker in facts.brokers:
        yield f"  broker     {_broker_text(broker)}"
    if facts.is_reachable:
        clock = facts.clock_difference_s
        text = "unknown" if clock is None else f"{clock:+.2f} s against this computer"
        yield f"  cluster    id {facts.cluster_id}; clock {text}"
        session = next((broker.tls for broker in facts.brokers if broker.tls), None)
        if session is not None:
            yield f"  TLS        {_tls_text(session)}"


def _broker_text(broker: BrokerCheck) -> str:
    origin = "" if broker.is_bootstrap else " (advertised)"
    if broker.error is not None:
        return f"{broker.address}{origin}: {broker.error}"
    release = f"Kafka {broker.release} or newer" if broker.release else "Kafka of unknown release"
    return f"{broker.address}{origin}: {release}, round trip {broker.round_trip_ms:.1f} ms"


def _tls_text(session: TlsSession) -> str:
    certificate = session.certificate
    names = ", ".join(value for _, value in certificate.get("subjectAltName", ()))
    return (
        f"{session.version}, {session.cipher}; certificate of {_name(certificate, 'subject')}"
        f" ({names or 'no alternative names'}), issued by {_name(certificate, 'issuer')},"
        f" valid until {certificate.get('notAfter', 'unknown')}"
    )


def _name(certificate: object, part: str) -> str:
    assert isinstance(certificate, dict)
    pairs = [pair for group in certificate.get(part, ()) for pair in group]
    return ", ".join(f"{key}={value}" for key, value in pairs) or "unknown"


def _rights_lines(check: ConnectionCheck) -> Iterator[str]:
    unknown = sum(one.is_granted is None for one in check.rights)
    asked = f"{len(check.rights)} needed, {len(check.lacking)} missing"
    later = f", {unknown} known only when the topic exists" if unknown else ""
    yield f"  rights     {asked}{later}"
    yield from (f"  missing    {line}" for line in _missing_lines(check.lacking))
    if check.lacking and check.principal != ANONYMOUS:
        yield "  grant      with an admin's login:"
        for line in kafka_acls_lines(check.bootstrap_servers, check.principal, check.lacking):
            yield f"    {line}"


def _missing_lines(rights: Iterable[NeededRight]) -> Iterator[str]:
    for resource, group in groupby(sorted(rights), key=lambda right: right.resource):
        of_resource = list(group)
        operations = ", ".join(operation_name(right.operation) for right in of_resource)
        purposes = "; ".join(dict.fromkeys(right.purpose for right in of_resource))
        yield f"{operations} on {resource} ({purposes})"
