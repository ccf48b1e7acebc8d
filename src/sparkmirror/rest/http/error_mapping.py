"""Maps errors to HTTP statuses. No other module does."""

from __future__ import annotations

import logging

from sparkmirror.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    MirrorError,
    NotFound,
    NotLeader,
    NotOwner,
    RebalanceNeeded,
    WorkerStarting,
)
from sparkmirror.rest.http.call import Reply, error_reply

log = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[MirrorError], int], ...] = (
    (NotFound, 404),
    (AlreadyExists, 409),
    (Conflict, 409),
    (NotLeader, 409),
    (NotOwner, 409),
    (RebalanceNeeded, 409),
    (BadRequest, 400),
    (Forbidden, 403),
    (WorkerStarting, 503),
)
_DEFAULT_STATUS = 500


def mirror_error_reply(error: MirrorError) -> Reply:
    """Return the reply for an error of this program, with its message."""
    status = next(
        (status for kind, status in _STATUSES if isinstance(error, kind)), _DEFAULT_STATUS
    )
    return error_reply(status, str(error))


def unexpected_error_reply(error: Exception, request_line: str) -> Reply:
    """Log a bug and return the reply for it, without the error's text: it may hold a secret."""
    log.error("Failed to answer %s; the client gets 500", request_line, exc_info=error)
    kind = type(error).__name__
    return error_reply(500, f"{kind}: the worker's log says more about it")
