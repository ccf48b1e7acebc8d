"""Errors as a status shows them: a trace in Java's form, without secrets.

    org.apache.kafka.common.errors.TimeoutException: source: no answer within 60 s
        at sparkmirror.cluster.admin.topics(admin.py:120)
    Caused by: ...

Tools read the first line: there sparkmirror's errors carry the Java class that Connect users know.
Values fetched for placeholders, and values of secret keys, are replaced.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final

from sparkmirror.config.secrets.password import HIDDEN
from sparkmirror.errors import (
    ClusterTimeout,
    ClusterUnavailable,
    ConfigError,
    JavaRegexError,
    MirrorError,
    NotAuthorized,
    RecordError,
    TooManyTasks,
    TopicMissing,
    UnsupportedByBroker,
)

_ERRORS: Final = "org.apache.kafka.common.errors."
CONNECT_EXCEPTION: Final = "org.apache.kafka.connect.errors.ConnectException"
JAVA_NAMES: Final[dict[type[BaseException], str]] = {
    JavaRegexError: "java.util.regex.PatternSyntaxException",
    ConfigError: "org.apache.kafka.common.config.ConfigException",
    ClusterTimeout: f"{_ERRORS}TimeoutException",
    ClusterUnavailable: f"{_ERRORS}TimeoutException",
    NotAuthorized: f"{_ERRORS}AuthorizationException",
    TopicMissing: f"{_ERRORS}UnknownTopicOrPartitionException",
    UnsupportedByBroker: f"{_ERRORS}UnsupportedVersionException",
    TooManyTasks: "org.apache.kafka.connect.runtime.TooManyTasksException",
    RecordError: "org.apache.kafka.connect.errors.DataException",
    MirrorError: CONNECT_EXCEPTION,
}


def format_trace(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return the trace of an error and its causes, with every secret replaced."""
    return hide_secrets("".join(_lines(error)), secrets)


def headline(error: BaseException) -> str:
    """Return only the first line of the trace."""
    for kind in type(error).__mro__:
        if kind in JAVA_NAMES:
            return f"{JAVA_NAMES[kind]}: {error}"
    return f"{CONNECT_EXCEPTION}: {type(error).__name__}: {error}"


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace every secret, the longest first: one may be part of another."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _lines(error: BaseException) -> Iterator[str]:
    yield f"{headline(error)}\n"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = PurePath(frame.filename)
        yield f"\tat {file.stem}.{frame.name}({file.name}:{frame.lineno})\n"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield "Caused by: "
        yield from _lines(cause)
