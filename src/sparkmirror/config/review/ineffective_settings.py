"""Why a setting of a part of a flow has no effect, although the part reads its config.

The table of a key says it for the keys that the part declares, and for the connection and security
keys of clients. Of all other keys of clients, only a few have an effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from sparkmirror.config.client_configs import ClientType, ClusterSide, connector_clients
from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.override_policy import PRODUCER_OVERRIDE_PREFIX
from sparkmirror.config.event_hubs_defaults import (
    COMPRESSION_TYPE,
    MAX_REQUEST_SIZE,
    REQUEST_TIMEOUT,
)
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.tables.client.common_client_configs import CLIENT
from sparkmirror.config.tables.no_effect_reasons import (
    BYTES,
    CLIENT_TUNING,
    METRICS,
    NO_SUCH_CLIENT,
    NO_TRANSFORMATIONS,
    TOPIC_CREATION,
)

_NO_EFFECT: Final = "No effect here: "
_PREFIXES: Final = {
    "key.converter.": BYTES,
    "value.converter.": BYTES,
    "header.converter.": BYTES,
    "topic.creation.": TOPIC_CREATION,
    "metrics.context.": METRICS,
}
_ALL_CLIENT_PREFIXES: Final = tuple(
    f"{side}{client_type}." for side in ("", "source.", "target.") for client_type in ClientType
)
_DATA_PRODUCER_NAMES: Final = frozenset(
    {"transaction.timeout.ms", MAX_REQUEST_SIZE, COMPRESSION_TYPE, REQUEST_TIMEOUT}
)
_CLIENT_NAMES: Final[Mapping[tuple[FlowPart, ClientType], Set[str]]] = {
    (FlowPart.WORKER, ClientType.PRODUCER): _DATA_PRODUCER_NAMES,
    (FlowPart.SOURCE, ClientType.CONSUMER): frozenset(
        {"auto.offset.reset", "client.id", "client.rack", "isolation.level"}
    ),
    (FlowPart.CHECKPOINT, ClientType.CONSUMER): frozenset({"client.id"}),
}
"""The names that have an effect beside those of every client."""


def no_effect_reason(part: FlowPart, key: str, config: Mapping[str, str]) -> str:
    """Return why a key of the config of a part has no effect; empty if it may have one."""
    return _description(part, key, config).removeprefix(_NO_EFFECT).rstrip(".")


def _description(part: FlowPart, key: str, config: Mapping[str, str]) -> str:
    if key.startswith("errors.") and part in (FlowPart.CHECKPOINT, FlowPart.HEARTBEAT):
        return NO_TRANSFORMATIONS
    if key in part.config_def:
        return _table_description(part.config_def, key)
    for prefix, description in _PREFIXES.items():
        if key.startswith(prefix):
            return description
    return _client_description(part, key, config)


def _table_description(config_def: ConfigDef, key: str) -> str:
    doc = config_def[key].doc
    return doc if doc.startswith(_NO_EFFECT) else ""


def _client_description(part: FlowPart, key: str, config: Mapping[str, str]) -> str:
    if part.connector is not None and key.startswith(PRODUCER_OVERRIDE_PREFIX):
        names = _DATA_PRODUCER_NAMES if part is FlowPart.SOURCE else frozenset[str]()
        return _name_description(key.removeprefix(PRODUCER_OVERRIDE_PREFIX), names)
    for side in ClusterSide:
        if key.startswith(f"{side}.cluster."):
            return _name_description(key.removeprefix(f"{side}.cluster."), frozenset())
    for prefix, client_type in _client_prefixes(part, config).items():
        if key.startswith(prefix):
            return _name_description(
                key.removeprefix(prefix), _CLIENT_NAMES.get((part, client_type), frozenset())
            )
    return NO_SUCH_CLIENT if key.startswith(_ALL_CLIENT_PREFIXES) else ""


def _client_prefixes(part: FlowPart, config: Mapping[str, str]) -> dict[str, ClientType]:
    """The prefixes of the keys of the clients that a part builds.

    Of a worker's own clients, only the producer reads a prefix.
    """
    if part.connector is None:
        return {f"{ClientType.PRODUCER}.": ClientType.PRODUCER}
    clients = connector_clients(part.connector.value, config)
    return {f"{side}.{client_type}.": client_type for side, client_type in clients} | {
        f"{client_type}.": client_type for _, client_type in clients
    }


def _name_description(name: str, effective_names: Set[str]) -> str:
    if name in CLIENT:
        return _table_description(CLIENT, name)
    return "" if name in effective_names else CLIENT_TUNING
