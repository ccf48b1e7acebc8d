"""Text becomes a value, and a value text, as in Kafka."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparkmirror.config.definition.value_types import (
    ParsedValue,
    Type,
    convert_to_string,
    invalid_value_message,
    message_text,
    parse_type,
    trim,
)
from sparkmirror.config.secrets.password import HIDDEN, Password
from sparkmirror.errors import ConfigError
from tests.support.golden import golden_json

VECTORS = golden_json("vectors/configdef-parse.json")["rows"]


def java_only(name: str) -> str | None:
    """Resolves only the one class that the recorded rows name."""
    return name if name == "java.lang.String" else None


def as_recorded(value: ParsedValue) -> object:
    """Write a value as the recording does."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, Password):
        return value.value
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("kind", "text", "recorded"), VECTORS, ids=range(len(VECTORS)))
def test_text_is_read_as_recorded(kind: str, text: str, recorded: object) -> None:
    if isinstance(recorded, dict):
        with pytest.raises(ConfigError) as caught:
            parse_type("k", text, Type(kind), java_only)
        assert str(caught.value) == recorded["message"]
    else:
        value = parse_type("k", text, Type(kind), java_only)
        assert as_recorded(value) == recorded
        assert type(as_recorded(value)) is type(recorded)


ITEMS = st.text(st.characters(codec="utf-8", exclude_characters=","), min_size=1).filter(
    lambda item: item == trim(item)
)
VALUES: dict[Type, st.SearchStrategy[ParsedValue]] = {
    Type.BOOLEAN: st.booleans(),
    Type.SHORT: st.integers(-(2**15), 2**15 - 1),
    Type.INT: st.integers(-(2**31), 2**31 - 1),
    Type.LONG: st.integers(-(2**63), 2**63 - 1),
    Type.DOUBLE: st.floats(allow_nan=False),
    Type.STRING: ITEMS,
    Type.LIST: st.lists(ITEMS).map(tuple),
    Type.CLASS: ITEMS,
}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])))
@example((Type.DOUBLE, 1e7))
@example((Type.DOUBLE, 5e-324))
def test_a_value_written_as_text_parses_to_the_same_value(
    kind_and_value: tuple[Type, ParsedValue],
) -> None:
    kind, value = kind_and_value
    assert parse_type("k", convert_to_string(value), kind, lambda name: name) == value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (0.05, "0.05"),
        (1000.0, "1000.0"),
        (9999999.0, "9999999.0"),
        (12345678.0, "1.2345678E7"),
        (-1e7, "-1.0E7"),
        (0.0001, "1.0E-4"),
        (1e300, "1.0E300"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_is_written_as_java_does(number: float, text: str) -> None:
    assert convert_to_string(number) == text


@pytest.mark.parametrize(
    "text", ["\u00a01", "1\u2003", "1__0", "inf", "nan", "1e", "0x1p3", ".", ""]
)
@pytest.mark.parametrize("kind", [Type.INT, Type.DOUBLE], ids=["INT", "DOUBLE"])
def test_a_number_that_only_python_accepts_is_refused(text: str, kind: Type) -> None:
    with pytest.raises(ConfigError, match="Not a number of type"):
        parse_type("k", text, kind, java_only)


@settings(max_examples=60, deadline=None)
@given(st.text(), st.sampled_from(Type))
def test_parsing_any_text_gives_a_value_or_a_config_error(text: str, kind: Type) -> None:
    try:
        parse_type("k", text, kind, java_only)
    except ConfigError as error:
        assert str(error).startswith(f"Invalid value {text} for configuration k: ")


def test_a_number_of_a_million_digits_is_refused_quickly() -> None:
    with pytest.raises(ConfigError):
        parse_type("k", "9" * 1_000_000, Type.LONG, java_only)
    assert parse_type("k", "0" * 1_000_000 + "7", Type.LONG, java_only) == 7


def test_a_missing_value_is_parsed_as_null() -> None:
    assert parse_type("k", None, Type.LIST, java_only) is None


def test_a_message_shows_values_as_java_does() -> None:
    assert [message_text(value) for value in (None, True, ("a", "b"), ())] == [
        "null",
        "true",
        "[a, b]",
        "[]",
    ]


def test_a_password_is_hidden_in_every_text() -> None:
    secret = Password("s3cret")
    assert str(secret) == repr(secret) == f"{secret}" == HIDDEN
    assert convert_to_string(secret) == HIDDEN
    assert "s3cret" not in invalid_value_message("k", secret, "no")
    assert "s3cret" not in repr({"k": [secret]})


def test_a_pickled_password_equals_the_original() -> None:
    secret = Password("s3cret")
    copy = pickle.loads(pickle.dumps(secret))
    assert copy == secret
    assert copy.value == "s3cret"
    assert secret != Password("other")
    assert hash(secret) == hash(copy)
