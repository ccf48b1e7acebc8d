"""A part of a Kubernetes resource: its fields, where they are, and which of them were read.

A field that is not read is either listed with the reason or unknown; `unread` returns both.
"""

from __future__ import annotations

from typing import Any

from sparkmirror.errors import ConfigFault


class ResourceFields:
    """The fields of one mapping. What has the wrong type is a fault, and counts as absent."""

    def __init__(self, value: Any, path: str, faults: list[ConfigFault]) -> None:
        self.path = path
        self._faults = faults
        self._read: set[str] = set()
        self._fields: dict[str, Any] = {}
        if isinstance(value, dict):
            self._fields = {str(name): field for name, field in value.items() if field is not None}
        elif value is not None:
            self.fault("", "must be a mapping of fields")

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def path_of(self, name: str) -> str:
        """Return the path of a field, as `kubectl explain` writes it."""
        return ".".join(filter(None, (self.path, name)))

    def fault(self, name: str, message: str) -> None:
        """Record that a field is wrong."""
        path = self.path_of(name)
        self._faults.append(ConfigFault(path, f"{path}: {message}"))

    def text(self, name: str) -> str | None:
        """Return a text, number or boolean as text; None if the field is absent."""
        self._read.add(name)
        value = self._fields.get(name)
        if isinstance(value, dict | list):
            self.fault(name, "must be a text")
            return None
        return None if value is None else scalar_text(value)

    def required_text(self, name: str) -> str:
        """Return the text of a field; an empty text, and a fault, if it is absent."""
        found = self.text(name)
        if not found and not isinstance(self.raw(name), dict | list):
            self.fault(name, "is missing")
        return found or ""

    def raw(self, name: str) -> Any:
        """Return a field as YAML has it, without counting it as read; None if it is absent."""
        return self._fields.get(name)

    def number(self, name: str) -> int | None:
        """Return a whole number; None if the field is absent or is none, which is a fault."""
        found = self.text(name)
        if found is None:
            return None
        if not found.isascii() or not found.isdecimal():
            self.fault(name, f"{found} is not a whole number")
            return None
        return int(found)

    def ignore(self, name: str) -> None:
        """Count a field as read."""
        self._read.add(name)

    def part(self, name: str) -> ResourceFields:
        """Return the fields of a mapping; none if it is absent."""
        self._read.add(name)
        return ResourceFields(self._fields.get(name), self.path_of(name), self._faults)

    def items(self, name: str) -> list[ResourceFields]:
        """Return the mappings of a list; none if it is absent."""
        self._read.add(name)
        value = self._fields.get(name, [])
        if not isinstance(value, list):
            self.fault(name, "must be a list; begin each item with '- '")
            return []
        path = self.path_of(name)
        return [
            ResourceFields(item, f"{path}[{at}]", self._faults) for at, item in enumerate(value)
        ]

    def settings(self, name: str) -> dict[str, str]:
        """Return a mapping from keys to texts, such as `config`."""
        self._read.add(name)
        part = ResourceFields(self._fields.get(name), self.path_of(name), self._faults)
        found = {key: part.text(key) for key in part.unread()}
        return {key: value for key, value in found.items() if value is not None}

    def unread(self) -> list[str]:
        """Return the names of the fields that were not read so far."""
        return [name for name in self._fields if name not in self._read]


def scalar_text(value: Any) -> str:
    """Return a number, boolean or text as a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
