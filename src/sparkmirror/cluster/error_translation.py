"""The client library's errors, said in our own words. The one place that knows both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import errors as kafka_errors

from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    TopicMissing,
    TopicRejected,
)

_NOT_AUTHORIZED = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)
_TOPIC_REJECTED = (
    kafka_errors.TopicAlreadyExistsError,
    kafka_errors.InvalidTopicError,
    kafka_errors.InvalidPartitionsError,
    kafka_errors.InvalidReplicationFactorError,
    kafka_errors.InvalidReplicationAssignmentError,
    kafka_errors.InvalidConfigurationError,
    kafka_errors.PolicyViolationError,
    kafka_errors.TopicDeletionDisabledError,
)
_for_code: Any = kafka_errors.for_code
# The first row that fits decides, so what is special stands before what is general.
_TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], type[ClusterError], str], ...] = (
    (_NOT_AUTHORIZED, NotAuthorized, "check the user, the password and the ACLs"),
    (
        (kafka_errors.UnknownTopicOrPartitionError, kafka_errors.UnknownTopicIdError),
        TopicMissing,
        "create the topic, or allow this user to see it",
    ),
    (_TOPIC_REJECTED, TopicRejected, "correct the topic's name or settings"),
    (
        (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError),
        ClusterTimeout,
        "look whether the brokers are well",
    ),
    (
        (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError),
        ClusterUnavailable,
        "look whether the brokers run and can be reached",
    ),
)


def is_retriable(error: kafka_errors.KafkaError) -> bool:
    """Tell whether the same call may succeed in a moment.

    A topic that does not exist counts as retriable in the library, because it may be on its way;
    here that is the caller's business.
    """
    if isinstance(error, kafka_errors.UnknownTopicOrPartitionError):
        return False
    return bool(error.retriable) or isinstance(error, kafka_errors.UnknownBrokerIdError)


def is_code_retriable(code: int) -> bool:
    """Tell the same for an error code in an answer."""
    return is_retriable(_for_code(code)())


def raise_if_retriable(code: int, message: str) -> None:
    """Raise the library's error for a code in an answer, if another try may do better."""
    if is_code_retriable(code):
        raise _for_code(code)(message)


def translate(error: kafka_errors.KafkaError, cluster: str) -> ClusterError:
    """Return our error for one of the library's."""
    said = ": ".join(str(part) for part in error.args) or getattr(error, "description", "")
    facts = f"{_error_name(error)} ({said})" if said else _error_name(error)
    for kinds, ours, advice in _TRANSLATIONS:
        if isinstance(error, kinds):
            return ours(cluster, f"{facts}: {advice}")
    return ClusterError(cluster, facts)


def error_from_code(code: int, message: str | None, cluster: str) -> ClusterError:
    """Return our error for a code in an answer."""
    kind = _for_code(code)
    return translate(kind(message) if message else kind(), cluster)


@contextmanager
def translating_errors(cluster: str) -> Iterator[None]:
    """Let nothing of the library's errors out of the block."""
    try:
        yield
    except kafka_errors.KafkaError as error:
        raise translate(error, cluster) from error


def _error_name(error: kafka_errors.KafkaError) -> str:
    """Kafka's own name of an error where it has one, else the library's."""
    return str(getattr(error, "message", "") or type(error).__name__)
