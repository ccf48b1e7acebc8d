"""Remarks about a configuration that do not make it invalid.

A notice is a value: the code that reads a file returns notices, and only the command line and the
log show them. A notice never contains the value of a key, so it may be printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """What a notice is about. The JSON output of `sparkmirror config validate` contains it."""

    DUPLICATE_KEY = "duplicate key"
    INLINE_COMMENT = "inline comment"
    TRAILING_BLANK = "trailing blank"
    BYTE_ORDER_MARK = "byte order mark"
    READ_AS_LATIN_1 = "read as ISO-8859-1"
    UNRESOLVED_VARIABLE = "unresolved variable"
    PROVIDER = "config provider"
    JAAS = "login module"
    DEPRECATED_KEY = "retired key"
    NO_EFFECT = "no effect"
    SHARED_BY_FLOWS = "shared by flows"
    IN_PLAIN_TEXT = "in plain text"
    REPEATED_ITEM = "repeated item"
    NOT_RUN = "does not run"
    READABLE_BY_OTHERS = "readable by others"
    START_FAILS = "fails at start"
    EVENT_HUBS = "values for Event Hubs"
    CIRCLE = "copied in a circle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice, with its file, line and key as far as they are known."""

    kind: NoticeKind
    message: str
    file: str = ""
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        location = ", ".join(part for part in (self.file, line, self.key) if part)
        return f"{location}: {self.message}" if location else self.message
