"""Things worth saying about a configuration that do not stop it from being accepted.

A notice is a value: whoever holds the file hands notices up, and only the command line and the
log decide whether they are shown. A notice never holds the value of a key, so it may be printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """What the notice is about, for those who filter."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One remark, and where it belongs: file, line and key as far as they are known."""

    kind: NoticeKind
    message: str
    file: str = ""
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(part for part in (self.file, line, self.key) if part)
        return f"{place}: {self.message}" if place else self.message
