"""Which error is which status. The only place in the whole program that knows."""

from __future__ import annotations

import logging

from sparkmirror.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    MirrorError,
    NotFound,
)
from sparkmirror.rest.exchange import Reply, error_reply

log = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[MirrorError], int], ...] = (
    (NotFound, 404),
    (AlreadyExists, 409),
    (Conflict, 409),
    (BadRequest, 400),
    (Forbidden, 403),
)
_ANY_OTHER = 500


def fault_reply(error: MirrorError) -> Reply:
    """Answer with an error that was raised on purpose, in its own words."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), _ANY_OTHER)
    return error_reply(status, str(error))


def surprise_reply(error: Exception, what: str) -> Reply:
    """Answer with an error that nobody expected. Its text goes to the log, not to the caller."""
    log.error("Failed to answer %s", what, exc_info=error)
    kind = type(error).__name__
    return error_reply(500, f"{kind}: the worker's log says more about it")
