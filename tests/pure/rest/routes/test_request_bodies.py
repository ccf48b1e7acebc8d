"""Bodies are parsed into configs, offsets and levels, or refused without repeating a value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.errors import RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.rest.routes.request_bodies import (
    read_config,
    read_create,
    read_level,
    read_offsets,
    read_patch,
)

TEXTS = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"x"', "x"),
        ("true", "true"),
        ("false", "false"),
        ("1", "1"),
        ("-0", "-0"),
        ("1.50", "1.50"),
        ("1e3", "1e3"),
        ("12345678901234567890", "12345678901234567890"),
        ("1" * 5000, "1" * 5000),
        ("null", None),
        ('"\\u00fc\\ud83d\\ude00"', "ü😀"),
    ],
)
def test_config_values_become_strings_with_their_digits(written: str, text: str | None) -> None:
    assert read_config(f'{{"a": {written}}}'.encode()) == {"a": text}


@given(config=st.dictionaries(TEXTS, st.none() | TEXTS))
def test_a_config_of_strings_is_unchanged(config: dict[str, str | None]) -> None:
    read = read_config(json.dumps(config, ensure_ascii=False).encode())
    assert list(read.items()) == list(config.items())


def test_the_last_of_a_repeated_member_wins() -> None:
    assert read_config(b'{"a": "1", "b": "2", "a": "3"}') == {"a": "3", "b": "2"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_unicode_encoding_of_json_is_read(encoding: str) -> None:
    assert read_config('{"a": "ü"}'.encode(encoding)) == {"a": "ü"}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"a": "s3cret"',
        b"{a: s3cret}",
        b'{"a": "s3cret",}',
        b'{"a": "s3cret"} x',
        b'{"a": NaN}',
        b'{"a": "s3cret\n"}',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        b'{"a": {"b": "s3cret"}}',
        b'{"a": ["s3cret"]}',
        b'["s3cret"]',
        b'"s3cret"',
        b"5",
        b"null",
        b"",
        b" ",
    ],
)
def test_a_body_that_is_not_a_config_is_refused_without_java_texts(body: bytes) -> None:
    with pytest.raises(RequestFailed) as caught:
        read_config(body)
    assert "s3cret" not in str(caught.value)
    assert "body of the request" in str(caught.value) or "was expected" in str(caught.value)


def test_malformed_json_is_refused_with_line_and_column() -> None:
    with pytest.raises(RequestFailed, match=r"\(line 2, column 1\)"):
        read_config(b'{"a": "b",\n}')


def test_an_empty_or_null_patch_is_none() -> None:
    assert read_patch(b"null") is None
    assert read_patch(b"") is None
    assert read_patch(b'{"a": null, "b": 1}') == {"a": None, "b": "1"}


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ('"RUNNING"', TargetState.STARTED),
        ('"Paused"', TargetState.PAUSED),
        ('"stopped"', TargetState.STOPPED),
        ("null", None),
    ],
)
def test_the_initial_state_ignores_case(state: str, wanted: TargetState | None) -> None:
    request = read_create(f'{{"name":"x","config":{{}},"initial_state":{state}}}'.encode())
    assert request.initial_state is wanted


@pytest.mark.parametrize(("name", "read"), [('" x\\t"', "x"), ("5", "5"), ("null", "")])
def test_a_name_is_trimmed(name: str, read: str) -> None:
    assert read_create(f'{{"name":{name},"config":{{}}}}'.encode()).name == read


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"name":"x","config":{},"foo":1}', 'Unrecognized field "foo"'),
        ('{"name":"x","config":{},"initial_state":"FOO"}', "RUNNING, PAUSED, STOPPED"),
        ('{"name":"x","config":{},"initial_state":""}', "RUNNING, PAUSED, STOPPED"),
        ('{"name":{},"config":{}}', "Cannot read name: a text"),
        ('{"name":"x"}', "Cannot read config: an object was expected, not null"),
        ('{"name":"x","config":"a"}', "an object was expected, not a text"),
        ('{"name":"x","config":5}', "an object was expected, not a number"),
        ('{"name":"x","config":[]}', "an object was expected, not a list"),
        ('{"name":"x","config":{"a":{}}}', 'config["a"]: a text, a number or a boolean'),
        ("null", "Cannot read the request: an object was expected, not null"),
    ],
)
def test_a_malformed_create_request_is_refused_with_the_reason(body: str, words: str) -> None:
    with pytest.raises(RequestFailed) as caught:
        read_create(body.encode())
    assert words in str(caught.value)


def test_offsets_keep_their_numbers() -> None:
    body = '{"offsets":[{"partition":{"a":0,"b":1.5},"offset":{"offset":9223372036854775808}}]}'
    wanted = ConnectorOffset(partition={"a": 0, "b": 1.5}, offset={"offset": 2**63})
    assert read_offsets(body.encode()) == (wanted,)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("{}", ()),
        ('{"offsets":null}', ()),
        ('{"offsets":[]}', ()),
        ('{"offsets":[{}]}', (ConnectorOffset(),)),
        ('{"offsets":[{"partition":{}}]}', (ConnectorOffset(partition={}),)),
    ],
)
def test_offsets_may_be_missing(body: str, read: tuple[ConnectorOffset, ...]) -> None:
    assert read_offsets(body.encode()) == read


@pytest.mark.parametrize(
    "body",
    [
        "null",
        "[]",
        '{"foo":1}',
        '{"offsets":"x"}',
        '{"offsets":[null]}',
        '{"offsets":[{"z":1}]}',
        '{"offsets":[{"partition":"x"}]}',
        '{"offsets":[{"partition":{},"offset":[1]}]}',
        '{"offsets":[{"partition":{},"offset":{"offset":1e999}}]}',
    ],
)
def test_malformed_offsets_are_refused(body: str) -> None:
    with pytest.raises(RequestFailed):
        read_offsets(body.encode())


@pytest.mark.parametrize(
    ("body", "level"), [("{}", None), ('{"level":null}', None), ('{"level":5}', "5")]
)
def test_a_level_may_be_missing(body: str, level: str | None) -> None:
    assert read_level(body.encode()) == level
