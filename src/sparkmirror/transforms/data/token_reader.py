"""The tokens of a literal text: each of `[ ] { } , : "` is one if it has no backslash."""

from __future__ import annotations

from typing import Final

_DELIMITERS: Final = frozenset('[]{},:"')


class TokenReader:
    """Reads a text token by token, and can go back."""

    __slots__ = ("_position", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def mark(self) -> int:
        """The position, for `rewind_to`."""
        return self._position

    def rewind_to(self, position: int) -> None:
        """Go back to a position."""
        self._position = position

    def has_next(self) -> bool:
        """Whether there is another token."""
        return self._position < len(self._text)

    def next(self) -> str:
        """The next token. Requires that there is one."""
        text, position = self._text, self._position
        if text[position] in _DELIMITERS:
            self._position += 1
            return text[position]
        start = position
        while position < len(text) and text[position] not in _DELIMITERS:
            position += 2 if text[position] == "\\" else 1
        self._position = min(position, len(text))
        return text[start : self._position]

    def next_tokens(self, count: int) -> str | None:
        """The next tokens as one text; None if there are fewer."""
        joined = ""
        for _ in range(count):
            if not self.has_next():
                return None
            joined += self.next()
        return joined

    def can_consume(self, expected: str, *, ignore_blanks: bool = True) -> bool:
        """Read the next token if it is the expected one. Return whether it was read."""
        start = self._position
        token = self.next() if self.has_next() else ""
        while ignore_blanks and not token.strip() and self.has_next():
            token = self.next()
        if (token.strip() if ignore_blanks else token) == expected:
            return True
        self._position = start
        return False
