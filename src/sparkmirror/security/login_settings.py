"""What a login is built from: the mechanism, the options of the login module, all properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """The settings of one login. Contains secrets."""

    mechanism: str
    options: Mapping[str, str] = field(repr=False)
    """The options of the login module."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All properties of the client."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment of the process: KAFKA_OPTS and what logins may use."""

    def key_or_option(self, key: str, option: str) -> str:
        """Return the value of a key of Kafka 4.1 and newer; else of the older option."""
        return (self.properties.get(key) or self.options.get(option) or "").strip()
