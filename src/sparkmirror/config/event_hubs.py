"""What the producer of records uses for Azure Event Hubs where no key says otherwise.

Event Hubs closes the connection on a request of more than 1,046,528 bytes. Which codecs it accepts
depends on its tier, so records are sent without compression unless `compression.type` names one.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.notices import Notice, NoticeKind

MAX_REQUEST_SIZE: Final = "max.request.size"
COMPRESSION_TYPE: Final = "compression.type"
EVENT_HUBS_DEFAULTS: Final[Mapping[str, str]] = {
    MAX_REQUEST_SIZE: "1000000",
    COMPRESSION_TYPE: "none",
}

_BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
_DOMAINS: Final = (
    ".servicebus.windows.net",
    ".servicebus.chinacloudapi.cn",
    ".servicebus.usgovcloudapi.net",
)
"""The domains of the public cloud, of Azure in China, and of Azure Government."""


def is_event_hubs(producer: Mapping[str, str]) -> bool:
    """Whether the bootstrap servers of a producer are those of Event Hubs."""
    servers = producer.get(_BOOTSTRAP_SERVERS, "").split(",")
    hosts = [server.strip().rpartition(":")[0].lower() for server in servers if server.strip()]
    return bool(hosts) and all(host.endswith(_DOMAINS) for host in hosts)


def event_hubs_defaults(producer: Mapping[str, str]) -> dict[str, str]:
    """Return the values that the properties of a producer lack; empty for other services."""
    if not is_event_hubs(producer):
        return {}
    return {key: value for key, value in EVENT_HUBS_DEFAULTS.items() if key not in producer}


def event_hubs_notice(producer: Mapping[str, str], key: str, line: int | None) -> Notice | None:
    """Return the notice about these values; None if there are none.

    `key` and `line` are those of the bootstrap servers.
    """
    applied = event_hubs_defaults(producer)
    if not applied:
        return None
    values = " and ".join(f"{name}={value}" for name, value in applied.items())
    return Notice(
        kind=NoticeKind.EVENT_HUBS,
        message=f"names Azure Event Hubs: the producer of records uses {values}, because no key"
        f" sets {'them' if len(applied) > 1 else 'it'}",
        key=key,
        line=line,
    )
