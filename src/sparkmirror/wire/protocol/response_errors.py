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
from sparkmirror.wire.net.endpoint_errors import CHECK_BROKER
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode


def error_for_code(
    cluster: str, api: str, code: ErrorCode, message: str | None = None
) -> ClusterError:
    """Return the exception for an error code of a response. RequestRefused keeps the code."""
    what = f"{api} answered {code}" + (f": {message}" if message else "")
    if code.action is ErrorAction.NOT_AUTHORIZED:
        return NotAuthorized(cluster, f"{what}; grant the right it needs")
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return TopicMissing(cluster, f"{what}; create the topic, or allow this user to describe it")
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ClusterTimeout(cluster, f"{what}; {CHECK_BROKER}")
    if code.is_retriable:
        return ClusterUnavailable(cluster, f"{what}; try again in a while")
    if code.action is ErrorAction.FENCED:
        what += "; another producer has taken over, so this one must stop"
    return RequestRefused(cluster, what, code=code.value)
