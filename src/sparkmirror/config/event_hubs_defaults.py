"""What clients of Azure Event Hubs use where no key says otherwise. Pure.

    max.request.size      producer of records   Event Hubs closes the connection on a request of
                                                more than 1,046,528 bytes
    compression.type      producer of records   which codecs it accepts depends on its tier
    request.timeout.ms    producer of records   it may work on a request for 20 seconds and longer;
                                                what is given up sooner may be appended later
    session.timeout.ms    the worker's group    its answers to heartbeats may be late

The other requests of a worker and its connectors have a time limit of their own, longer there than
elsewhere (`event_hubs_request_timeout_s`). Neither `connections.max.idle.ms` nor
`metadata.max.age.ms` is needed: docs/delivery.md says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.notices import Notice, NoticeKind

MAX_REQUEST_SIZE: Final = "max.request.size"
COMPRESSION_TYPE: Final = "compression.type"
REQUEST_TIMEOUT: Final = "request.timeout.ms"
SESSION_TIMEOUT: Final = "session.timeout.ms"
EVENT_HUBS_DEFAULTS: Final[Mapping[str, str]] = {
    MAX_REQUEST_SIZE: "1000000",
    COMPRESSION_TYPE: "none",
    REQUEST_TIMEOUT: "60000",
}
EVENT_HUBS_WORKER_DEFAULTS: Final[Mapping[str, str]] = {SESSION_TIMEOUT: "30000"}
_REQUEST_TIMEOUT_S: Final = 60.0

_BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
_DOMAINS: Final = (
    ".servicebus.windows.net",
    ".servicebus.chinacloudapi.cn",
    ".servicebus.usgovcloudapi.net",
)
"""The domains of the public cloud, of Azure in China, and of Azure Government."""


def is_event_hubs(client: Mapping[str, str]) -> bool:
    """Whether the bootstrap servers of a client are those of Event Hubs."""
    servers = client.get(_BOOTSTRAP_SERVERS, "").split(",")
    hosts = [server.strip().rpartition(":")[0].lower() for server in servers if server.strip()]
    return bool(hosts) and all(host.endswith(_DOMAINS) for host in hosts)


def event_hubs_defaults(producer: Mapping[str, str]) -> dict[str, str]:
    """Return the values that the properties of a producer lack; empty for other services."""
    if not is_event_hubs(producer):
        return {}
    return {key: value for key, value in EVENT_HUBS_DEFAULTS.items() if key not in producer}


def event_hubs_worker_defaults(worker: Mapping[str, str]) -> dict[str, str]:
    """Return the values that the properties of a worker lack; empty for other services."""
    if not is_event_hubs(worker):
        return {}
    return {key: value for key, value in EVENT_HUBS_WORKER_DEFAULTS.items() if key not in worker}


def event_hubs_request_timeout_s(client: Mapping[str, str]) -> float | None:
    """Return how long one request of a client may take; None for other services."""
    return _REQUEST_TIMEOUT_S if is_event_hubs(client) else None


def event_hubs_notice(
    producer: Mapping[str, str], worker: Mapping[str, str], key: str, line: int | None
) -> Notice | None:
    """Return the notice about the values of a worker and its producer; None if there are none.

    `key` and `line` are those of the bootstrap servers.
    """
    users = {
        "the producer of records": event_hubs_defaults(producer),
        "the worker": event_hubs_worker_defaults(worker),
    }
    parts = [f"{user} uses {_and_list(values)}" for user, values in users.items() if values]
    if not parts:
        return None
    is_one = sum(map(len, users.values())) == 1
    return Notice(
        kind=NoticeKind.EVENT_HUBS,
        message=f"names Azure Event Hubs: {', '.join(parts)}, because no key sets"
        f" {'it' if is_one else 'them'}",
        key=key,
        line=line,
    )


def _and_list(values: Mapping[str, str]) -> str:
    *first, last = (f"{name}={value}" for name, value in values.items())
    return f"{', '.join(first)} and {last}" if first else last
