"""`CONNECT_*` variables as properties of a worker, by the rule of Confluent's images. Pure.

The prefix goes, the rest becomes lower case, and of the underscores

    ___   becomes   _
    __    becomes   -
    _     becomes   .

A value is written into the file as it is, so a backslash in it is an escape of the file, as it is
there. A line break that no backslash precedes is written as `\\n`: it would end the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "CONNECT_"
DEFAULT_PLUGIN_PATH: Final = "/usr/share/java/,/usr/share/confluent-hub-components/"
"""What Confluent's image writes. The worker loads no Java plug-ins and says so."""
REQUIRED_KEYS: Final = (
    "bootstrap.servers",
    "group.id",
    "config.storage.topic",
    "offset.storage.topic",
    "status.storage.topic",
    "key.converter",
    "value.converter",
)
_NO_PROPERTIES: Final = {
    "CONNECT_CUB_": "the worker itself waits for its brokers",
    "CONNECT_LOG4J_": (
        "there is no log4j. CONNECT_LOG4J_ROOT_LOGLEVEL and CONNECT_LOG4J_LOGGERS set log levels"
    ),
}
"""How variables begin that Confluent's image reads and that are no properties, and why."""
_ROOT_LEVEL: Final = "CONNECT_LOG4J_ROOT_LOGLEVEL"
_LOGGERS: Final = "CONNECT_LOG4J_LOGGERS"
_UNDERSCORES = re.compile("_{1,3}")
_SIGNS = {"_": ".", "__": "-", "___": "_"}
_SERVICE_NAME = re.compile(
    r"CONNECT(_\w+)?_SERVICE_(HOST|PORT(_\w+)?)|"
    r"CONNECT(_\w+)?_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
)
_SERVICE_PORT = re.compile(r"(tcp|udp|sctp)://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectEnvironment:
    """The properties that an environment has for a worker, and notes about other variables."""

    properties: Mapping[str, str] = field(repr=False)
    log_levels: str
    """As in `SPARKMIRROR_LOG_LEVELS`: `root=WARN,org.apache.kafka=DEBUG`; may be empty."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ConnectEnvironment:
        """Read the `CONNECT_*` variables. Without one of them there are no properties."""
        properties: dict[str, str] = {}
        notes: list[str] = []
        services: list[str] = []
        for name in sorted(environment):
            if not name.startswith(PREFIX) or name in (PREFIX, _ROOT_LEVEL, _LOGGERS):
                continue
            if is_service_variable(name, environment[name]):
                services.append(name)
            elif reason := _no_property_reason(name):
                notes.append(f"{name} has no effect: {reason}.")
            else:
                properties[property_name(name)] = environment[name]
        if services:
            notes.append(f"{', '.join(services)}: set by Kubernetes for a Service; ignored.")
        return cls(properties=properties, log_levels=_log_levels(environment), notes=tuple(notes))

    @property
    def missing_variables(self) -> tuple[str, ...]:
        """The variables of properties that a worker needs and the environment lacks."""
        return tuple(map(variable_name, (k for k in REQUIRED_KEYS if not self.properties.get(k))))


def property_name(variable: str) -> str:
    """Return the property that a `CONNECT_*` variable sets."""
    assert variable.startswith(PREFIX)
    name = variable.removeprefix(PREFIX).lower()
    return _UNDERSCORES.sub(lambda found: _SIGNS[found.group()], name)


def variable_name(key: str) -> str:
    """Return the `CONNECT_*` variable that sets a property."""
    signs = str.maketrans({sign: underscores for underscores, sign in _SIGNS.items()})
    return PREFIX + key.translate(signs).upper()


def is_service_variable(name: str, value: str) -> bool:
    """Whether Kubernetes sets the variable in each pod beside a Service named `connect…`."""
    is_port = name.endswith("_PORT") and _SERVICE_PORT.match(value) is not None
    return is_port or _SERVICE_NAME.fullmatch(name) is not None


def worker_properties_text(found: ConnectEnvironment) -> str:
    """Return the content of the worker's file, a line per property in the order of their names.

    It has the plug-in path of Confluent's image, unless a variable sets it.
    """
    properties = {"plugin.path": DEFAULT_PLUGIN_PATH, **found.properties}
    return "".join(f"{key}={_ascii(_one_value(properties[key]))}\n" for key in sorted(properties))


def _log_levels(environment: Mapping[str, str]) -> str:
    """Return the levels of Confluent's two variables in the form of ours."""
    root, loggers = environment.get(_ROOT_LEVEL), environment.get(_LOGGERS)
    return ",".join(([f"root={root}"] if root else []) + ([loggers] if loggers else []))


def _one_value(value: str) -> str:
    """Return the value with each line break escaped that would end it.

    A backslash at the end is doubled: alone it would join the next property to the value.
    """
    *lines, last = value.replace("\r\n", "\n").rstrip("\n").replace("\r", "\\r").split("\n")
    text = "".join(line + ("\n" if _is_continued(line) else "\\n") for line in lines)
    return text + last + ("\\" if _is_continued(last) else "")


def _ascii(value: str) -> str:
    """Return the value with letters beyond ASCII as `\\uXXXX`: the file is read as ISO-8859-1."""
    if value.isascii():
        return value
    units = value.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _no_property_reason(name: str) -> str | None:
    found = (reason for prefix, reason in _NO_PROPERTIES.items() if name.startswith(prefix))
    return next(found, None)
