"""What logins may use: URLs of token endpoints, files, and Python classes.

Configs of connectors arrive over REST. A login that fetched from any URL would let their authors
send requests into the worker's network (CVE-2025-27817 in Kafka's own client). So a login uses only
what the operator of the process lists: nothing without a list, as in Kafka 4.

The operator has three places. The lists are added:

- the worker's file or mm2.properties: `sparkmirror.oauthbearer.allowed.urls`, `.files`, `.classes`;
- KAFKA_OPTS: `-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=...` and `...allowed.files=...`;
- the environment: SPARKMIRROR_OAUTHBEARER_ALLOWED_URLS, _FILES, _CLASSES. A worker hands the lists
  of its file to driver processes and executors in these variables.

Properties of a client never extend the lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.errors import ConfigError
from sparkmirror.security.java_options import system_property

ALLOWED_URLS = "sparkmirror.oauthbearer.allowed.urls"
ALLOWED_FILES = "sparkmirror.oauthbearer.allowed.files"
ALLOWED_CLASSES = "sparkmirror.oauthbearer.allowed.classes"
ALLOWED_KEYS = (ALLOWED_URLS, ALLOWED_FILES, ALLOWED_CLASSES)
_JAVA_PREFIX = "org.apache.kafka.sasl.oauthbearer.allowed."


def environment_variable(key: str) -> str:
    """Return the variable that carries the list of a key."""
    return key.upper().replace(".", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedResources:
    """The lists of one process."""

    urls: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read KAFKA_OPTS and the variables of the environment."""
        urls, files, classes = (
            _items(environment.get(environment_variable(key), "")) for key in ALLOWED_KEYS
        )
        return cls(
            urls=urls | _items(system_property(environment, f"{_JAVA_PREFIX}urls")),
            files=files | _items(system_property(environment, f"{_JAVA_PREFIX}files")),
            classes=classes,
        )

    def require_url(self, key: str, url: str) -> None:
        """Raise ConfigError unless the URL is listed. A file URL may be listed as a file."""
        if url in self.urls or (url.startswith("file:") and file_of_url(url) in self.files):
            return
        raise _not_allowed(key, url, ALLOWED_URLS, f"{_JAVA_PREFIX}urls")

    def require_file(self, key: str, file: str) -> None:
        """Raise ConfigError unless the file is listed."""
        if file not in self.files:
            raise _not_allowed(key, file, ALLOWED_FILES, f"{_JAVA_PREFIX}files")

    def require_class(self, key: str, name: str) -> None:
        """Raise ConfigError unless the Python class is listed."""
        if name not in self.classes:
            raise _not_allowed(key, name, ALLOWED_CLASSES)


def with_allowed_resources(
    properties: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with the lists of a worker's file added."""
    made = dict(environment)
    for key in ALLOWED_KEYS:
        variable = environment_variable(key)
        listed = _items(properties.get(key, "")) | _items(environment.get(variable, ""))
        if listed:
            made[variable] = ",".join(sorted(listed))
    return made


def allowed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with all lists of a process, for its executors on other hosts."""
    made = AllowedResources.from_environment(environment)
    lists = zip(ALLOWED_KEYS, (made.urls, made.files, made.classes), strict=True)
    return {environment_variable(key): ",".join(sorted(listed)) for key, listed in lists if listed}


def file_of_url(url: str) -> str:
    """Return the path of a `file:` URL."""
    path = url.removeprefix("file:")
    return "/" + path.lstrip("/") if path.startswith("/") else path


def _items(text: str) -> frozenset[str]:
    return frozenset(filter(None, (item.strip() for item in text.split(","))))


def _not_allowed(key: str, value: str, setting: str, java_property: str = "") -> ConfigError:
    java = f", or -D{java_property}={value} to KAFKA_OPTS" if java_property else ""
    return ConfigError.of(
        key,
        f"{key}: logins may not use {value}; the operator adds {setting}={value} to the file of"
        f" the worker{java}",
    )
