"""Errors as they stand in a status: Java's form, no secrets."""

from __future__ import annotations

import pytest

from sparkmirror.connect.runtime.status.stack_traces import format_trace, headline, hide_secrets
from sparkmirror.errors import (
    ClusterTimeout,
    ConfigError,
    JavaRegexError,
    MirrorError,
    NotAuthorized,
    TooManyTasks,
)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ClusterTimeout("source", "gone"),
            "org.apache.kafka.common.errors.TimeoutException: source",
        ),
        (NotAuthorized("t", "no"), "org.apache.kafka.common.errors.AuthorizationException: t: no"),
        (ConfigError.of("k", "bad"), "org.apache.kafka.common.config.ConfigException: bad"),
        (JavaRegexError("[", 0, "x", "y"), "java.util.regex.PatternSyntaxException: pattern '['"),
        (MirrorError("m"), "org.apache.kafka.connect.errors.ConnectException: m"),
        (KeyError("k"), "org.apache.kafka.connect.errors.ConnectException: KeyError: 'k'"),
        (TooManyTasks("c", 2, 1), "org.apache.kafka.connect.runtime.TooManyTasksException: The c"),
    ],
    ids=["timeout", "acl", "config", "regex", "ours", "any", "tasks"],
)
def test_the_first_line_of_a_trace_has_the_java_class(error: Exception, line: str) -> None:
    assert headline(error).startswith(line)


def test_a_trace_shows_where_and_why() -> None:
    def fail() -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise MirrorError("outer") from error

    with pytest.raises(MirrorError) as caught:
        fail()
    first, at, *rest = format_trace(caught.value).splitlines()
    assert first == "org.apache.kafka.connect.errors.ConnectException: outer"
    assert at.startswith("\tat test_stack_traces.fail(test_stack_traces.py:")
    assert any(line.startswith("Caused by: ") and "inner" in line for line in rest)


def test_a_suppressed_cause_is_not_in_the_trace() -> None:
    with pytest.raises(MirrorError) as caught:
        try:
            raise KeyError("password")
        except KeyError:
            raise MirrorError("outer") from None
    assert "password" not in format_trace(caught.value)


def test_the_longest_secret_is_replaced_first() -> None:
    assert hide_secrets("user:abcd-efgh abcd", ["abcd", "abcd-efgh"]) == "user:[hidden] [hidden]"


def test_causes_are_searched_for_secrets_too() -> None:
    error = MirrorError("outer")
    error.__cause__ = KeyError("s3cret")
    assert "s3cret" not in format_trace(error, ["s3cret"])
