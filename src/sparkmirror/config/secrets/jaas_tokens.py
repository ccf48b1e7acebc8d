"""The words of a JAAS configuration, cut as Java's StreamTokenizer cuts them.

Knows only the lexical rules, with Kafka's settings (`-`, `_` and `$` belong to words). They are
stranger than they look, so they are written down once, here:

- a word may contain digits and dots but not begin with one; what does is a number, even `1.2` of
  `1.2.3`, and a number has no text;
- a quoted text ends at its quote, or silently at the end of the line; C escapes and octal
  codes up to \\377 are understood in it;
- `//`, but also a single `/`, hides the rest of the line, and a `/` at the end of a line hides the
  next one too; in a block comment the character after a line end is never looked at;
- every other character stands for itself.

Text here may be a secret: it is not in the repr.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = "A-Za-z_$\u00a0-\U0010ffff"
_TOKEN = re.compile(
    rf"""
      (?P<blank>[\x00-\x20]+)
    | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]*))
    | (?P<word>[{_WORD}][{_WORD}0-9.-]*)
    | (?P<quote>["'])(?P<text>(?:\\(?:.|\Z)|(?!(?P=quote))[^\\\n\r])*+)(?P<end>(?P=quote)?)
    | (?P<line_comment>//[^\n\r]*|/(?!\*).?[^\n\r]*)
    | (?P<block_comment>/\*(?:(?:\r\n?+|\n).|[^\r\n])+?(?<=\*)/)
    | (?P<endless_comment>/\*.*)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.)|\Z)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_END_OF_INPUT = "\uffff"


class JaasToken(NamedTuple):
    """A word or a quoted text (`text`), a sign (`sign`), or a number (neither)."""

    position: int
    text: str | None = None
    sign: str = ""
    closed: bool = True
    """False for a quoted text that the end of the line, and not its quote, has ended."""

    def __repr__(self) -> str:
        return f"Token(position={self.position}, sign={self.sign!r})"


def tokenize(source: str) -> Iterator[JaasToken]:
    """Cut a text; comments and blanks are left out."""
    for match in _TOKEN.finditer(source):
        position = match.start()
        match match.lastgroup:
            case "word":
                yield JaasToken(position, text=match["word"])
            case "end":
                text = _ESCAPE.sub(_unescape_match, match["text"])
                yield JaasToken(position, text=text, closed=bool(match["end"]))
            case "number":
                yield JaasToken(position)
            case "sign":
                yield JaasToken(position, sign=match["sign"])


def _unescape_match(match: re.Match[str]) -> str:
    octal, plain = match.groups()
    if octal is not None:
        return chr(int(octal, 8))
    return _END_OF_INPUT if plain is None else _CONTROL.get(plain, plain)
