"""The checks of a start that the tables do not make.

A worker that starts builds clients, a REST server and the jobs of its connectors, and refuses
settings that it cannot use: a store without a key, an unsupported SASL mechanism, a transformation.
Those checks belong to layers above `config`. The command line passes them down as functions, so
that a validation finds the same faults, in the same words, as the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.definition.value_types import ParsedValue, Props
from sparkmirror.errors import ConfigFault

SECURITY_PROTOCOL_KEY = "security.protocol"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCheckCallbacks:
    """Functions that return the faults of a start. None of them connects to a cluster."""

    client: Callable[[Mapping[str, str]], Sequence[ConfigFault]]
    """Takes the properties of one Kafka client. A fault names the client's own property."""
    rest: Callable[[Mapping[str, ParsedValue], Mapping[str, str]], Sequence[ConfigFault]]
    """Takes the parsed config of a process, and all its properties as text."""
    connector: Callable[[Mapping[str, str], Mapping[str, str]], Sequence[ConfigFault]]
    """Takes a connector's config and its worker's properties. The connector's config is valid."""
    transformations: Callable[[Props], Sequence[ConfigFault]]
    """Takes a source connector's config. The REST API refuses a config with these faults too."""
    circular_topic: Callable[[Mapping[str, str], Mapping[str, str]], str]
    """Takes the configs of two source connectors, of a flow and its reverse flow. Returns a topic
    that they copy to each other without end, or an empty text."""


def related_keys(key: str, properties: Iterable[str]) -> tuple[str, ...]:
    """The properties that a fault about this property may depend on, itself included.

    A key store, its password and its certificates are one unit: all `ssl.*` keys belong together.
    """
    if not key.startswith("ssl."):
        return (key,)
    return (key, *(name for name in properties if name.startswith("ssl.") and name != key))
