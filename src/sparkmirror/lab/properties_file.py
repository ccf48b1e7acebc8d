"""Writes Java .properties files, so that Java reads back exactly the same values.

`sparkmirror.config.files.properties` reads such files. They may hold passwords, so only their
owner can read them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_ESCAPED_IN_KEYS = {**_ESCAPED, " ": "\\ ", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}


def format_properties(properties: Mapping[str, str]) -> str:
    """Return one line for each property, in plain ASCII."""
    return "".join(
        f"{_escape(key, _ESCAPED_IN_KEYS)}={_escape_value(value)}\n"
        for key, value in properties.items()
    )


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a file that only its owner can read; return its path."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(format_properties(properties))
    return path


def _escape_value(value: str) -> str:
    escaped = _escape(value, _ESCAPED)
    # Java reads a space at the beginning as part of the separator.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(letter) or _ascii(letter) for letter in text)


def _ascii(letter: str) -> str:
    if " " <= letter <= "~":
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
