"""The exception for an error code in a response."""

from __future__ import annotations

from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    RequestRefused,
    TopicMissing,
)
from sparkmirror.wire.net.endpoint import CHECK_BROKER
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode


def error_for_code(
    cluster: str, api: str, code: ErrorCode, message: str | None = None
) -> ClusterError:
    """Build the error for a code that ended a whole call; `code` stays readable on it."""
    said = f"{api} answered {code}" + (f": {message}" if message else "")
    if code.action is ErrorAction.NOT_AUTHORIZED:
        return NotAuthorized(cluster, f"{said}; grant the right it needs")
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return TopicMissing(cluster, f"{said}; create the topic, or let this user see it")
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ClusterTimeout(cluster, f"{said}; {CHECK_BROKER}")
    if code.is_retriable:
        return ClusterUnavailable(cluster, f"{said}; try again in a while")
    if code.action is ErrorAction.FENCED:
        said += "; another has taken over, so stop here"
    return RequestRefused(cluster, said, code=code.value)
