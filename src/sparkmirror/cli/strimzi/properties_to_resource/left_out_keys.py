"""Why a key of a file is in no exported resource. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sparkmirror.cli.strimzi.config_provider_kinds import kind_of_class, provider_kinds
from sparkmirror.config.files.deprecated_keys import REMOVED_KEYS, RENAMED_KEYS
from sparkmirror.config.files.flow_config_precedence import (
    CLIENT_TYPES,
    CONFIG_PROVIDERS_PREFIX,
    NAMES_FOR_ALL_FLOWS,
)
from sparkmirror.config.files.mirror_maker_config import INTERNAL_REST, MirrorMakerConfig
from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.tables.additions import SPARK_PREFIX
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.model import SourceAndTarget

_OWN_PREFIX: Final = "sparkmirror."
_PROCESS: Final = "is not carried over: it belongs to this process"


def left_out_reason(
    key: str, value: str, config: MirrorMakerConfig, flows: Sequence[SourceAndTarget]
) -> str:
    """Return why a key has no place in a resource; an empty text if it needs none."""
    if key.startswith(CONFIG_PROVIDERS_PREFIX):
        return _provider_reason(key, value, config)
    if key == INTERNAL_REST:
        return "is not carried over: set spec.replicas to the number of processes"
    flow = next((one for one in config.cluster_pairs if key.startswith(f"{one}.")), None)
    name = key.removeprefix(f"{flow}.")
    if name.startswith((_OWN_PREFIX, SPARK_PREFIX)):
        return "is not carried over: only sparkmirror reads it"
    if flow is not None:
        if flow not in flows:
            return f"is not carried over: {flow} is not enabled"
        return _without_effect(name, str(flow))
    alias = next((one for one in config.clusters if key.startswith(f"{one}.")), None)
    if alias is not None:
        return (
            "is not carried over: another key overrides it, or no enabled flow has the cluster "
            f"{alias}"
        )
    if key.startswith(CLIENT_TYPES):
        return "has no effect: write <cluster>. or <flow>. before it"
    if name in NAMES_FOR_ALL_FLOWS or name in CLIENT_SECURITY_NAMES or name in RENAMED_KEYS:
        return _without_effect(name, "the flows that are enabled")
    return _without_effect(name, "Strimzi") if name in REMOVED_KEYS else _PROCESS


def _without_effect(name: str, owner: str) -> str:
    if name in REMOVED_KEYS:
        return f"is not carried over: {REMOVED_KEYS[name]}"
    return (
        f"has no effect on {owner}: another key overrides it, or no connector of Strimzi reads it"
    )


def _provider_reason(key: str, value: str, config: MirrorMakerConfig) -> str:
    """Strimzi has config providers of its own; those of Kafka need no place in a resource."""
    kinds = provider_kinds(config.properties.mapping)
    if key == CONFIG_PROVIDERS_KEY:
        names = [name for one in value.split(",") if (name := one.strip())]
        unknown = [name for name in names if not kinds.get(name)]
        return f"Strimzi has no config provider {', '.join(unknown)}" if unknown else ""
    if key.endswith(".class") and kind_of_class(value):
        return ""
    return "is not carried over: Strimzi has config providers of its own"
