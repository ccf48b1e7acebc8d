"""JsonConverter: documents and envelopes are read and written without a loss."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.errors import TransformError
from sparkmirror.transforms.converters.json_converter import (
    PlainJsonConverter,
    SchemaJsonConverter,
)
from sparkmirror.transforms.converters.json_envelope import EnvelopeReader

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
SCALARS = (
    st.none() | st.booleans() | LONGS | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
STRUCT = {
    "type": "struct",
    "fields": [
        {"type": "int64", "optional": False, "field": "i"},
        {"type": "double", "optional": True, "field": "d"},
        {"type": "string", "optional": True, "default": "x", "field": "s"},
        {"type": "array", "items": {"type": "boolean", "optional": True}, "optional": True}
        | {"field": "a"},
        {"type": "map", "keys": {"type": "int32", "optional": False}}
        | {"values": {"type": "string", "optional": False}, "optional": True, "field": "m"},
        {"type": "int32", "optional": True, "name": "org.apache.kafka.connect.data.Date"}
        | {"version": 1, "field": "t"},
    ],
    "optional": False,
    "name": "order",
    "version": 2,
    "doc": "an order",
    "parameters": {"p": "q"},
}
PAYLOADS = st.fixed_dictionaries(
    {
        "i": LONGS,
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "s": st.text(),
        "a": st.none() | st.lists(st.none() | st.booleans(), max_size=3),
        "m": st.none() | st.lists(st.tuples(st.integers(0, 9), st.text()).map(list), max_size=1),
        "t": st.none() | st.integers(-100_000, 100_000),
    }
)


def envelope(schema: Any, payload: Any, **layout: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}, **layout).encode()


def without_sign_of_zero(value: Any) -> Any:
    """Java's decimals have no negative zero."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [without_sign_of_zero(item) for item in value]
    if isinstance(value, dict):
        return {name: without_sign_of_zero(item) for name, item in value.items()}
    return value


@given(DOCUMENTS, st.booleans())
def test_a_document_is_written_as_it_was_read(document: Any, ensure_ascii: bool) -> None:
    converter = PlainJsonConverter()
    try:
        data = json.dumps(document, ensure_ascii=ensure_ascii).encode()
    except UnicodeEncodeError:  # Half of a surrogate pair is valid JSON as an escape only.
        data = json.dumps(document).encode()
    schema, value = converter.to_connect_data(data)
    assert schema is None
    written = converter.from_connect_data(schema, value)
    if document is None:
        assert written is None
    else:
        assert written is not None
        assert json.loads(written) == without_sign_of_zero(document)


@given(PAYLOADS)
def test_an_envelope_is_written_as_it_was_read(payload: Any) -> None:
    converter = SchemaJsonConverter()
    written = converter.from_connect_data(*converter.to_connect_data(envelope(STRUCT, payload)))
    assert written is not None
    assert json.loads(written) == {"schema": STRUCT, "payload": without_sign_of_zero(payload)}


@given(
    PAYLOADS, PAYLOADS, st.sampled_from([None, 1]), st.sampled_from([(",", ":"), (" , ", " : ")])
)
def test_a_known_beginning_gives_the_same_as_the_whole_envelope(
    first: Any, second: Any, indent: int | None, separators: tuple[str, str]
) -> None:
    data = envelope(STRUCT, second, indent=indent, separators=separators)
    reader = EnvelopeReader()
    schema, _ = reader.read(envelope(STRUCT, first, indent=indent, separators=separators))
    again, payload = reader.read(data)
    assert again is schema
    assert payload == EnvelopeReader().read(data)[1]


@pytest.mark.parametrize(
    "ending", ["", ",", "]", ',"more":1}', ',"payload":2}', "} x", " \n}", "x}"]
)
def test_what_follows_the_payload_counts_also_behind_a_known_beginning(ending: str) -> None:
    beginning = '{"schema":{"type":"int32","optional":false},"payload":'
    reader = EnvelopeReader()
    reader.read(f"{beginning}1}}".encode())
    data = f"{beginning}2{ending}".encode()
    results = []
    for one in (reader, EnvelopeReader()):
        try:
            schema, payload = one.read(data)
            results.append((str(schema), payload))
        except TransformError as error:
            results.append(("", str(error)))
    assert results[0] == results[1]


def test_schemas_with_decimal_defaults_are_known_again() -> None:
    schema = {"type": "double", "optional": True, "default": 1.5}
    converter = SchemaJsonConverter()
    first = converter.to_connect_data(envelope(schema, 1.0, indent=1))
    second = converter.to_connect_data(envelope(schema, 2.0))
    assert first.schema is second.schema


def test_infinity_is_written_as_a_text() -> None:
    assert PlainJsonConverter().from_connect_data(None, [math.inf, -math.inf, math.nan]) == (
        b'["Infinity","-Infinity","NaN"]'
    )


@pytest.mark.parametrize("payload", [b"1e999999999", b"-1e999999999", b"1e-999999999", b"9" * 4000])
@pytest.mark.parametrize("kind", ["int8", "int64", "float", "double"])
def test_a_number_with_a_large_exponent_is_read_at_once(payload: bytes, kind: str) -> None:
    schema = json.dumps({"type": kind, "optional": False}).encode()
    data = b'{"schema":' + schema + b',"payload":' + payload + b"}"
    converter = SchemaJsonConverter()
    assert converter.from_connect_data(*converter.to_connect_data(data)) is not None
