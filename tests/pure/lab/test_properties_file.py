"""Properties files that the lab writes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files import properties
from sparkmirror.lab.properties_file import format_properties, write_properties

_texts = st.text(
    st.one_of(st.sampled_from(" =:#!\\\t\n\r\f"), st.characters(exclude_categories=["Cs"]))
)


@settings(max_examples=60)
@given(st.dictionaries(_texts.filter(bool), _texts))
def test_properties_are_read_as_written(properties_written: dict[str, str]) -> None:
    data = format_properties(properties_written).encode("ascii")
    assert properties.parse_properties(data, file="any").mapping == properties_written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain:9092", "k=plain:9092\n"),
        (" after a blank", "k=\\ after a blank\n"),
        ("C:\\keys", "k=C:\\\\keys\n"),
        ("ü€😀", "k=\\u00fc\\u20ac\\ud83d\\ude00\n"),
    ],
    ids=["plain", "blank", "backslash", "unicode"],
)
def test_only_special_characters_are_escaped(value: str, written: str) -> None:
    assert format_properties({"k": value}) == written


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = write_properties(tmp_path / "client.properties", {"password": "s"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
