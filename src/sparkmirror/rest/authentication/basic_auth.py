"""Basic authentication with the users of Connect's own REST extension.

The section `KafkaConnect` of a JAAS file names a properties file of `user=password` lines.

The file is read once. Connect accepts every request if the file is empty; here an empty file is an
error. Passwords are compared in constant time and never shown.
"""

from __future__ import annotations

import base64
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
    """The users of the API and their passwords."""

    def __init__(self, passwords: Mapping[str, Password]) -> None:
        self._passwords = dict(passwords)

    def __repr__(self) -> str:
        return f"BasicAuthUsers({len(self._passwords)})"

    def authenticate(self, authorization: str | None) -> str | None:
        """Return the user of an Authorization header; None if the credentials are wrong."""
        name, given = _credentials(authorization or "")
        # An unknown user takes the same time, so that the time does not show which users exist.
        expected = self._passwords.get(name, Password("")).value
        is_correct = hmac.compare_digest(expected.encode("utf-8"), given.encode("utf-8"))
        return name if is_correct and name in self._passwords else None


def load_users_from_jaas(file: Path) -> BasicAuthUsers:
    """Read the users of the properties file that a JAAS file names. Raises ConfigError."""
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
    """Read a file of `user=password` lines. Raises ConfigError."""
    entries = properties.load_properties(file).mapping
    if not entries:
        raise _config_error(f"the file of users {file} is empty; add at least one user=password")
    return BasicAuthUsers({name: Password(password) for name, password in entries.items()})


def _credentials(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except ValueError:  # not ASCII, not base64, or not UTF-8
        return "", ""
    name, _, password = decoded.partition(":")
    return name, password


def _config_error(message: str) -> ConfigError:
    return ConfigError.of(_KEY, f"{_KEY}: {message}")
