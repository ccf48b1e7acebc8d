"""Names and passwords for the REST API, where Connect's own extension has them.

A properties file of `user=password` lines, named by the section `KafkaConnect` of a JAAS file.

The file is read once. An empty one would let everybody in; here it is refused. Passwords are
compared in constant time and are never shown.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.config.files import properties
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
_LOGIN_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_SECTION = re.compile(r"\bKafkaConnect\s*\{(.*?)\}\s*;", re.DOTALL)
_KEY = "rest.extension.classes"


class BasicAuthUsers:
    """Who may use the API."""

    def __init__(self, passwords: Mapping[str, Password]) -> None:
        self._passwords = dict(passwords)

    def __repr__(self) -> str:
        return f"Users({len(self._passwords)})"

    def authenticate(self, authorization: str | None) -> str | None:
        """Name the user whom this header belongs to; None if it lets nobody in."""
        name, given = _credentials(authorization or "")
        # Compared even where there is no such user, so that the time says nothing.
        expected = self._passwords.get(name, Password("")).value
        right = hmac.compare_digest(expected.encode("utf-8"), given.encode("utf-8"))
        return name if right and name in self._passwords else None


def load_users_from_jaas(file: Path) -> BasicAuthUsers:
    """Read the users whom a JAAS file points at."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _config_error(f"the JAAS file {file} cannot be read: {error}") from None
    section = _SECTION.search(text)
    if section is None:
        raise _config_error(f"the JAAS file {file} has no section KafkaConnect {{ ... }};")
    for module in jaas.parse_jaas_config(section[1]):
        if module.class_name == _LOGIN_MODULE:
            return load_users_from_properties(Path(module.options.get("file", "")))
    raise _config_error(f"the section KafkaConnect of {file} does not name {_LOGIN_MODULE}")


def load_users_from_properties(file: Path) -> BasicAuthUsers:
    """Read a file of `user=password` lines."""
    entries = properties.load_properties(file).mapping
    if not entries:
        raise _config_error(f"the file of users {file} is empty; that would let everybody in")
    return BasicAuthUsers({name: Password(password) for name, password in entries.items()})


def _credentials(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    name, _, password = decoded.partition(":")
    return name, password


def _config_error(message: str) -> ConfigError:
    return ConfigError.of(_KEY, f"{_KEY}: {message}")
