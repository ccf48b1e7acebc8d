"""One line for each request, in the form of Connect's own request log."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLogEntry:
    """A request that was answered."""

    client: str
    user: str | None
    request: str
    """Method, target and version, as sent."""
    status: int
    sent_bytes: int
    referer: str
    user_agent: str
    duration_ms: int


def write(visit: AccessLogEntry) -> None:
    """Write the line, in the form that log analysers know from web servers."""
    log.info(
        '%s - %s [%s] "%s" %d %d "%s" "%s" %d',
        visit.client,
        visit.user or "-",
        time.strftime("%d/%b/%Y:%H:%M:%S %z"),
        visit.request,
        visit.status,
        visit.sent_bytes,
        visit.referer or "-",
        visit.user_agent or "-",
        visit.duration_ms,
    )
