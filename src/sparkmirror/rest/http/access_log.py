"""The access log: one line per request, in the format of Connect's request log."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLogEntry:
    """One answered request."""

    client: str
    user: str | None
    request: str
    """Method, target and HTTP version, as sent."""
    status: int
    sent_bytes: int
    referer: str
    user_agent: str
    duration_ms: int


def write(entry: AccessLogEntry) -> None:
    """Log the entry in the combined log format, which log analysers read."""
    log.info(
        '%s - %s [%s] "%s" %d %d "%s" "%s" %d',
        entry.client,
        entry.user or "-",
        time.strftime("%d/%b/%Y:%H:%M:%S %z"),
        entry.request,
        entry.status,
        entry.sent_bytes,
        entry.referer or "-",
        entry.user_agent or "-",
        entry.duration_ms,
    )
