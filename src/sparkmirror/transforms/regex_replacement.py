"""The replacement texts of Java's `Matcher.replaceFirst`: `$1`, `${name}` and backslashes."""

from __future__ import annotations

import re
from typing import Final

from sparkmirror.transforms.data.java_exceptions import illegal_argument, index_out_of_bounds

_GROUP_NAME: Final = re.compile("[a-zA-Z][a-zA-Z0-9]*")


def expand_replacement(match: re.Match[str], replacement: str) -> str:
    """The replacement with the groups of a match in it. A group that took no part is empty.

    Raises as `parse_replacement`.
    """
    parts = parse_replacement(match.re, replacement)
    return "".join(part if isinstance(part, str) else match[part] or "" for part in parts)


def parse_replacement(pattern: re.Pattern[str], replacement: str) -> list[str | int]:
    """The texts and the numbers of groups that a replacement consists of.

    Raises IllegalArgumentException for a malformed text, and IndexOutOfBoundsException for a group
    that the pattern does not have.
    """
    result: list[str | int] = []
    position = 0
    while position < len(replacement):
        char = replacement[position]
        position += 1
        if char == "\\":
            if position == len(replacement):
                raise illegal_argument("character to be escaped is missing")
            result.append(replacement[position])
            position += 1
        elif char == "$":
            group, position = _group(pattern, replacement, position)
            result.append(group)
        else:
            result.append(char)
    return result


def _group(pattern: re.Pattern[str], text: str, position: int) -> tuple[int, int]:
    """Read a reference behind its `$`: the number of the group, and the position behind it."""
    if position == len(text):
        raise illegal_argument("Illegal group reference: group index is missing")
    if text[position] == "{":
        return _named_group(pattern, text, position + 1)
    if not _is_digit(text[position]):
        raise illegal_argument("Illegal group reference")
    number = int(text[position])
    position += 1
    if number > pattern.groups:
        raise index_out_of_bounds(f"No group {number}")
    # Further digits belong to the number as long as there is such a group.
    while position < len(text) and _is_digit(text[position]):
        longer = number * 10 + int(text[position])
        if longer > pattern.groups:
            break
        number = longer
        position += 1
    return number, position


def _named_group(pattern: re.Pattern[str], text: str, position: int) -> tuple[int, int]:
    found = _GROUP_NAME.match(text, position)
    name = found[0] if found else ""
    if not name:
        raise illegal_argument("named capturing group is missing trailing '}'")
    end = position + len(name)
    if text[end : end + 1] != "}":
        raise illegal_argument("named capturing group is missing trailing '}'")
    if name not in pattern.groupindex:
        raise illegal_argument(f"No group with name {{{name}}}")
    return pattern.groupindex[name], end + 1


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()
