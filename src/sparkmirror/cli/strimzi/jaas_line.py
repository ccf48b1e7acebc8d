"""The text of `sasl.jaas.config`. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def jaas_line(module: str, options: Mapping[str, str], flag: str = "required") -> str:
    """Return the line of a login module with its options."""
    written = (f"{name}={_quoted(value)}" for name, value in options.items())
    return " ".join([module, flag, *written]) + ";"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
