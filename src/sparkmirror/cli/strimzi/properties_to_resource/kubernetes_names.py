"""Names that Kubernetes accepts, made from names that it refuses. Pure.

A resource of Strimzi names services and labels, so its name is a label of RFC 1123: lower case
letters, digits and `-`, at most 63. A Secret may have dots in its name too.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Final

MAX_LENGTH: Final = 63
_MAX_SECRET_LENGTH: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_SECRET_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def is_resource_name(name: str) -> bool:
    """Whether a resource of Strimzi may have the name."""
    return len(name) <= MAX_LENGTH and _LABEL.fullmatch(name) is not None


def is_secret_name(name: str) -> bool:
    """Whether a Secret may have the name."""
    return len(name) <= _MAX_SECRET_LENGTH and _SUBDOMAIN.fullmatch(name) is not None


def is_secret_key(key: str) -> bool:
    """Whether a key of a Secret may have the name."""
    return _SECRET_KEY.fullmatch(key) is not None and key not in {".", ".."}


def secret_key_name(text: str) -> str:
    """Return the name of a key of a Secret; the same text if it is valid."""
    made = re.sub(r"[^-._a-zA-Z0-9]+", "-", text)[:_MAX_SECRET_LENGTH]
    return made if is_secret_key(made) else "value"


def resource_name(text: str) -> str:
    """Return a valid name with the letters and digits of the text."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_LENGTH].rstrip("-")
    return made or "mirror"


def variable_name(text: str) -> str:
    """Return the name of a variable with the letters and digits of the text."""
    made = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")
    return made if made[:1].isalpha() else f"MIRROR_{made}"


class UniqueNames:
    """Gives each owner a name that no other owner has."""

    def __init__(self, reserved: Iterable[str] = (), separator: str = "-") -> None:
        self._taken = set(reserved)
        self._separator = separator
        self._names: dict[Hashable, str] = {}

    def name_of(self, owner: Hashable, wanted: str) -> str:
        """Return the name of an owner: the wanted one, with a number if another owner has it."""
        if owner not in self._names:
            name, number = wanted, 1
            while name in self._taken:
                number += 1
                suffix = f"{self._separator}{number}"
                name = f"{wanted[: MAX_LENGTH - len(suffix)]}{suffix}"
            self._taken.add(name)
            self._names[owner] = name
        return self._names[owner]
