"""Java's .properties format, read as `java.util.Properties` reads it, with line numbers kept.

The grammar: `=`, `:` or a blank
ends the key; `#` or `!` begins a comment, at the start of a line only; a line that ends in an odd
number of backslashes goes on in the next; `\\uXXXX`, `\\t`, `\\n`, `\\r` and `\\f` are escapes, any
other backslash vanishes; of several values for one key the last one counts.

Two things differ from Java on purpose. A byte order mark is dropped with a notice: Java makes it
part of the first key, which then silently has no effect. And a file that ends in a line holding
nothing but a backslash has no entry there, where Java sees an empty key.

Values may be secrets, so no repr, notice or error here shows one.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.errors import PropertiesError

BLANKS = " \t\f"
NO_LINE = 0
"""The line of a key that is not in the file."""

# Possessive, so that a key of ten million escapes needs no memory for backtracking.
_ENTRY = re.compile(
    r"([^\\=: \t\f]*+(?:\\.[^\\=: \t\f]*+)*+)[ \t\f]*+(?:[=:][ \t\f]*+)?+(.*+)", re.DOTALL
)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_COMMENT_LIKE = re.compile(r"[ \t]#")
_SURROGATE = re.compile("[\ud800-\udfff]")


class PropertiesEncoding(Enum):
    """How the bytes of a file become characters."""

    LATIN_1 = "iso-8859-1"
    """The file given on the command line: mm2.properties, a worker's file."""
    UTF_8 = "utf-8"
    """A file that a config provider reads."""


class PropertyEntry(NamedTuple):
    """One key with its value and the line on which it begins."""

    key: str
    value: str
    line: int

    def __repr__(self) -> str:
        return f"PropertyEntry(key={self.key!r}, line={self.line})"


class DuplicateKey(NamedTuple):
    """A key that was given more than once; the last line counts."""

    key: str
    lines: tuple[int, ...]


class Properties:
    """The entries of a .properties file, in the order of the file."""

    def __init__(
        self, file: str, entries: tuple[PropertyEntry, ...], notices: tuple[Notice, ...]
    ) -> None:
        self.file = file
        self.entries = entries
        self._notices = notices

    def __repr__(self) -> str:
        return f"Properties(file={self.file!r}, entries={len(self.entries)})"

    @cached_property
    def mapping(self) -> dict[str, str]:
        """Key to value; of several values the last one."""
        return {entry.key: entry.value for entry in self.entries}

    @cached_property
    def lines(self) -> dict[str, int]:
        """Key to the line whose value counts. A key that is not in the file has no line."""
        return {entry.key: entry.line for entry in self.entries if entry.line != NO_LINE}

    def with_default(self, key: str, value: str) -> Properties:
        """Return the properties with a value for a key that the file may lack."""
        if key in self.mapping:
            return self
        return Properties(
            self.file, (*self.entries, PropertyEntry(key, value, NO_LINE)), self._notices
        )

    @cached_property
    def duplicates(self) -> tuple[DuplicateKey, ...]:
        """Every key given more than once, in order of first appearance."""
        if len(self.mapping) == len(self.entries):
            return ()
        lines: dict[str, list[int]] = {}
        for entry in self.entries:
            lines.setdefault(entry.key, []).append(entry.line)
        return tuple(DuplicateKey(key, tuple(at)) for key, at in lines.items() if len(at) > 1)

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """Notices about text that Java accepts, but that is probably a mistake."""
        notices = [*self._notices, *map(self._duplicate_notice, self.duplicates)]
        for entry in self.entries:
            notices.extend(self._entry_notices(entry))
        return tuple(sorted(notices, key=lambda notice: notice.line or 0))

    def _duplicate_notice(self, duplicate: DuplicateKey) -> Notice:
        *earlier, last = duplicate.lines
        given = ", ".join(map(str, earlier))
        return Notice(
            kind=NoticeKind.DUPLICATE_KEY,
            message=f"also given on line {given}; only line {last} counts",
            file=self.file,
            line=last,
            key=duplicate.key,
        )

    def _entry_notices(self, entry: PropertyEntry) -> Iterator[Notice]:
        value = entry.value
        if "#" in value and _COMMENT_LIKE.search(_QUOTED.sub("", value)):
            message = (
                "the value contains ' #': this format has no comments after a value, so that text "
                "is part of the value; put the comment on a line of its own"
            )
            yield self._notice(NoticeKind.INLINE_COMMENT, entry, message)
        if value and value[-1] in BLANKS:
            message = "the value ends in a blank, which counts: 'true ' does not enable a flow"
            yield self._notice(NoticeKind.TRAILING_BLANK, entry, message)

    def _notice(self, kind: NoticeKind, entry: PropertyEntry, message: str) -> Notice:
        return Notice(kind=kind, message=message, file=self.file, line=entry.line, key=entry.key)


def load_properties(
    path: Path, encoding: PropertiesEncoding = PropertiesEncoding.LATIN_1
) -> Properties:
    """Read a .properties file. Raises PropertiesError if it cannot be read."""
    return parse_properties(read_bytes(path), file=str(path), encoding=encoding)


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises PropertiesError if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise PropertiesError(str(path), None, "there is no such file; check the path") from None
    except IsADirectoryError:
        raise PropertiesError(str(path), None, "is a directory; name the file in it") from None
    except PermissionError:
        message = "may not be read by this user; check its owner and mode"
        raise PropertiesError(str(path), None, message) from None
    except (OSError, ValueError) as error:
        raise PropertiesError(str(path), None, f"cannot be read: {error}") from None


def parse_properties(
    data: bytes, *, file: str, encoding: PropertiesEncoding = PropertiesEncoding.LATIN_1
) -> Properties:
    """Parse the bytes of a file. Raises PropertiesError with the line and key of a syntax error."""
    marked = data.startswith(codecs.BOM_UTF8)
    text = _decode(data.removeprefix(codecs.BOM_UTF8), file, encoding)
    logical_lines = list(_logical_lines(text))
    notices: list[Notice] = []
    if marked:
        message = "begins with a byte order mark; it was dropped, but Java would make it part of "
        notices.append(
            Notice(
                kind=NoticeKind.BYTE_ORDER_MARK,
                message=message + "the first key: save the file without one",
                file=file,
                line=1,
            )
        )
    if encoding is PropertiesEncoding.LATIN_1 and _is_utf_8(data):
        notices.extend(_wrong_encoding_notices(logical_lines, file))
    entries = tuple(_parse_entry(line, logical, file) for line, logical in logical_lines)
    return Properties(file, entries, tuple(notices))


def _decode(data: bytes, file: str, encoding: PropertiesEncoding) -> str:
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and b"\0" in data[2:4]:
        message = "is encoded in UTF-16, which this format does not allow; save it as plain text"
        raise PropertiesError(file, 1, message)
    try:
        return data.decode(encoding.value)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = "holds bytes that are not UTF-8; save the file as UTF-8"
        raise PropertiesError(file, line, message) from None


def _is_utf_8(data: bytes) -> bool:
    if data.isascii():
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _wrong_encoding_notices(logical_lines: list[tuple[int, str]], file: str) -> Iterator[Notice]:
    """Yield a notice for UTF-8 text outside of comments, which is read as ISO-8859-1."""
    for line, logical in logical_lines:
        if not logical.isascii():
            message = (
                "holds UTF-8 text, but this file is read as ISO-8859-1, so every such letter "
                "becomes two or more; write it as \\uXXXX"
            )
            yield Notice(kind=NoticeKind.READ_AS_LATIN_1, message=message, file=file, line=line)
            return


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines; leave out blanks and comments. Yields (first line number, text)."""
    pieces: list[str] = []
    first = 0
    natural = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(natural, 1):
        content = line.lstrip(BLANKS)
        if not pieces:
            if not content or content[0] in "#!":
                continue
            first = number
        backslashes = len(content) - len(content.rstrip("\\"))
        continued = backslashes % 2 == 1
        if continued:
            content = content[:-1]
        if content:
            pieces.append(content)
        if pieces and not continued:
            yield first, "".join(pieces)
            pieces = []
    if pieces:
        yield first, "".join(pieces)


def _parse_entry(line: int, logical: str, file: str) -> PropertyEntry:
    match = _ENTRY.fullmatch(logical)
    assert match is not None, "every logical line has a key and a value, perhaps empty"
    raw_key, raw_value = match.groups()
    named = f"key {raw_key!r}"
    try:
        key = _unescape(raw_key)
        named = f"value of {key!r}"
        return PropertyEntry(key, _unescape(raw_value), line)
    except _MalformedEscape:
        message = (
            f"Malformed \\uxxxx encoding in the {named}: four hexadecimal digits must follow \\u; "
            "write \\\\u for a backslash and a u"
        )
        raise PropertiesError(file, line, message) from None


class _MalformedEscape(Exception):
    """A \\u without its four digits. The whole file is refused, as in Java."""


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _join_surrogates(_ESCAPE.sub(_unescape_match, text))


def _unescape_match(match: re.Match[str]) -> str:
    code, plain = match.groups()
    if code is not None:
        return chr(int(code, 16))
    if plain == "u":
        raise _MalformedEscape
    return _CONTROL.get(plain, plain)


def _join_surrogates(text: str) -> str:
    """Two \\u escapes may spell one character beyond U+FFFF, as they do in Java's UTF-16."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
