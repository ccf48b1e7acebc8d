"""Properties files are read back as they were meant."""

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
def test_what_is_written_is_read_back(said: dict[str, str]) -> None:
    data = format_properties(said).encode("ascii")
    assert properties.parse_properties(data, file="any").mapping == said


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain:9092", "k=plain:9092\n"),
        (" led by a blank", "k=\\ led by a blank\n"),
        ("C:\\keys", "k=C:\\\\keys\n"),
        ("ü€😀", "k=\\u00fc\\u20ac\\ud83d\\ude00\n"),
    ],
    ids=["plain", "blank", "backslash", "unicode"],
)
def test_values_stay_readable_where_they_can(value: str, written: str) -> None:
    assert format_properties({"k": value}) == written


def test_a_file_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    path = write_properties(tmp_path / "client.properties", {"password": "s"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
