"""A .properties file is read as in Java; what Java ignores without a warning is a notice."""

from __future__ import annotations

import base64
import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files.properties import (
    Properties,
    PropertiesEncoding,
    load_properties,
    parse_properties,
)
from sparkmirror.config.notices import NoticeKind
from sparkmirror.errors import PropertiesError
from tests.support.golden import golden_json

VECTORS: list[dict[str, Any]] = golden_json("vectors/java-properties.json")
CORPUS: list[tuple[str, dict[str, str]]] = golden_json("corpus/properties.json")


def read(text: str) -> Properties:
    return parse_properties(text.encode("latin-1"), file="mm2.properties")


def kinds(text: str) -> list[NoticeKind]:
    return [notice.kind for notice in read(text).notices]


@pytest.mark.parametrize("case", VECTORS, ids=range(len(VECTORS)))
def test_every_recorded_text_is_read_as_java_reads_it(case: dict[str, Any]) -> None:
    data = base64.b64decode(case["input_base64"])
    if "error" not in case["result"]:
        assert parse_properties(data, file="x").mapping == case["result"]
        return
    with pytest.raises(PropertiesError) as raised:
        parse_properties(data, file="x")
    assert case["result"]["message"].rstrip(".") in str(raised.value)


def test_random_texts_are_read_as_java_reads_them() -> None:
    for text, expected in CORPUS:
        try:
            found = parse_properties(
                text.encode(), file="x", encoding=PropertiesEncoding.UTF_8
            ).mapping
        except PropertiesError:
            found = {"refused": ""}
        assert found == expected, repr(text)


def test_a_malformed_escape_names_file_line_and_key_but_no_value() -> None:
    with pytest.raises(PropertiesError) as raised:
        read("a=1\nsasl.password=hunter2\\u12\n")
    message = str(raised.value)
    assert message.startswith("mm2.properties, line 2: Malformed \\uxxxx encoding")
    assert "sasl.password" in message
    assert "hunter2" not in message


def test_an_entry_has_the_line_on_which_it_begins() -> None:
    found = read("# comment\na=1\\\n  2\n\nb:3\r\nc 4\rd=5")
    assert [(e.key, e.value, e.line) for e in found.entries] == [
        ("a", "12", 2),
        ("b", "3", 5),
        ("c", "4", 6),
        ("d", "5", 7),
    ]
    assert found.lines == {"a": 2, "b": 5, "c": 6, "d": 7}


def test_the_last_of_repeated_keys_wins_and_all_lines_are_reported() -> None:
    found = read("a=1\nb=2\na=3\na=4")
    assert found.mapping == {"a": "4", "b": "2"}
    assert [(d.key, d.lines) for d in found.duplicates] == [("a", (1, 3, 4))]
    (notice,) = found.notices
    assert (notice.kind, notice.line, notice.key) == (NoticeKind.DUPLICATE_KEY, 4, "a")
    assert "line 1, 3" in notice.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topics = .*   # all topics", [NoticeKind.INLINE_COMMENT]),
        ("topics = a\t# all", [NoticeKind.INLINE_COMMENT]),
        ("topics = a#b", []),
        ("topics = #a", []),
        ('sasl.jaas.config = M required password="p #q";', []),
        ('sasl.jaas.config = M required password="p"; # "secret"', [NoticeKind.INLINE_COMMENT]),
        ("A->B.enabled = true ", [NoticeKind.TRAILING_BLANK]),
        ("a = \t", []),
        ("# a = b # c ", []),
    ],
)
def test_text_that_java_reads_without_a_warning_is_a_notice(
    text: str, expected: list[NoticeKind]
) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize("encoding", PropertiesEncoding)
def test_a_byte_order_mark_is_dropped_with_a_notice(encoding: PropertiesEncoding) -> None:
    found = parse_properties(b"\xef\xbb\xbfclusters=A,B\n", file="x", encoding=encoding)
    assert found.mapping == {"clusters": "A,B"}
    assert [notice.kind for notice in found.notices] == [NoticeKind.BYTE_ORDER_MARK]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_utf_16_file_is_refused_and_its_encoding_named(encoding: str) -> None:
    data = (
        "\ufeffclusters=A".encode(encoding) if encoding == "utf-16-be" else "c=A".encode(encoding)
    )
    with pytest.raises(PropertiesError, match="UTF-16"):
        parse_properties(data, file="x")


def test_utf_8_in_a_latin_1_file_is_read_as_java_does_with_a_notice() -> None:
    found = parse_properties("# ä\na=1\nname=Zürich\n".encode(), file="x")
    assert found.mapping["name"] == "ZÃ¼rich"
    assert [(n.kind, n.line) for n in found.notices] == [(NoticeKind.READ_AS_LATIN_1, 3)]


def test_utf_8_in_comments_gives_no_notice() -> None:
    assert parse_properties("# Zürich\na=1\n".encode(), file="x").notices == ()


def test_a_latin_1_file_gives_no_notice() -> None:
    found = parse_properties(b"name=Z\xfcrich", file="x")
    assert found.mapping == {"name": "Zürich"}
    assert found.notices == ()


def test_a_provider_file_that_is_not_utf_8_names_the_line() -> None:
    with pytest.raises(PropertiesError) as raised:
        parse_properties(
            b"a=1\npw=Z\xfcrich", file="secrets.properties", encoding=PropertiesEncoding.UTF_8
        )
    assert str(raised.value).startswith("secrets.properties, line 2:")


@pytest.mark.parametrize("data", [b"x=\0y", b"\0=1", b"a=1\x0b\x1c\x85b=2"])
def test_control_bytes_are_kept_and_do_not_end_a_line(data: bytes) -> None:
    assert len(parse_properties(data, file="x").entries) == 1


@pytest.mark.parametrize(
    "data",
    [b"key = value\n" * 30_000, b"\\a" * 100_000, b"a\\\n" * 100_000, b"a=" + b"\\" * 200_000],
    ids=["lines", "escapes", "continued", "backslashes"],
)
def test_a_large_file_is_read_in_linear_time(data: bytes) -> None:
    began = time.thread_time()
    assert parse_properties(data, file="x").entries
    assert time.thread_time() - began < 10


def test_a_missing_file_a_directory_and_a_nul_have_different_errors(tmp_path: Path) -> None:
    with pytest.raises(PropertiesError, match="there is no such file"):
        load_properties(tmp_path / "none.properties")
    with pytest.raises(PropertiesError, match="is a directory"):
        load_properties(tmp_path)
    with pytest.raises(PropertiesError, match="cannot be read"):
        load_properties(Path("a\0b"))


def test_a_file_without_read_permission_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    file = tmp_path / "mm2.properties"
    file.touch()
    monkeypatch.setattr(Path, "read_bytes", refuse)  # root may read a file of mode 0
    with pytest.raises(PropertiesError, match="may not be read by this user; check its owner"):
        load_properties(file)


def test_no_repr_shows_a_value() -> None:
    found = read("ssl.key.password=hunter2\n")
    assert "hunter2" not in repr(found) + repr(found.entries)


def written(key: str, value: str) -> str:
    """A line with every special character escaped."""

    def escaped(text: str) -> str:
        units = text.encode("utf-16-be", "surrogatepass")
        codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
        return "".join(
            f"\\u{code:04x}" if code > 126 or code < 33 else _plain(code) for code in codes
        )

    return f"{escaped(key)}={escaped(value)}"


def _plain(code: int) -> str:
    return "\\" + chr(code) if chr(code) in "\\:=#!" else chr(code)


TEXT = st.text(max_size=12)


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
@settings(max_examples=60, deadline=None)
def test_escaped_entries_are_read_back(config: dict[str, str]) -> None:
    text = "\n".join(written(key, value) for key, value in config.items())
    assert read(text).mapping == config


@given(st.text(st.sampled_from("ab =:\\\n\r\t\f#!u04é\0"), max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read(text)
    except PropertiesError:
        return
    assert found.mapping.keys() == found.lines.keys()
    assert all(
        1 <= line <= text.count("\n") + text.count("\r") + 1 for line in found.lines.values()
    )
