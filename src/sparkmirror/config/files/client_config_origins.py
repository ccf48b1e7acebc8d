"""The properties of a connector's clients, each with the key of the file that set it.

`client_configs` computes the same properties without their origins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkmirror.config.client_configs import (
    BOOTSTRAP_SERVERS,
    DEFAULT_CONSUMER_CONFIG,
    FIXED_CONSUMER_CONFIG,
    WORKER_PRODUCER_PREFIX,
    ClientType,
    ConnectorClient,
)
from sparkmirror.config.definition.override_policy import PRODUCER_OVERRIDE_PREFIX
from sparkmirror.config.event_hubs_defaults import event_hubs_defaults, event_hubs_worker_defaults
from sparkmirror.config.files.provenance import (
    CandidateValue,
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
)
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES

Expand = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Returns properties with the values of their placeholders, where these can be read."""


def client_layers(connector: LayeredConfig, client: ConnectorClient) -> LayeredConfig:
    """The properties of one client, from the compiled config of its connector."""
    side, client_type = client
    layers = LayeredConfig()
    for name in CLIENT_SECURITY_NAMES:
        _override(layers, name, connector, f"{side}.cluster.{name}")
    for prefix in (f"{client_type}.", f"{side}.{client_type}."):
        _override_with_prefix(layers, connector, prefix)
    if client_type is ClientType.CONSUMER:
        for name, value in DEFAULT_CONSUMER_CONFIG.items():
            layers.add_fallback(name, _derived(value))
        for name, value in FIXED_CONSUMER_CONFIG.items():
            layers.add_override(name, _derived(value))
    return layers


def worker_producer_layers(
    worker: LayeredConfig, connector: LayeredConfig, expand: Expand = dict
) -> LayeredConfig:
    """The properties of the worker's producer for one connector, from both compiled configs.

    Without `expand`, bootstrap servers that are a placeholder are not those of Event Hubs.
    """
    layers = LayeredConfig()
    _override(layers, BOOTSTRAP_SERVERS, worker, BOOTSTRAP_SERVERS)
    _override_with_prefix(layers, worker, WORKER_PRODUCER_PREFIX)
    _override_with_prefix(layers, connector, PRODUCER_OVERRIDE_PREFIX)
    _add_event_hubs_values(layers, event_hubs_defaults, expand)
    return layers


def add_worker_defaults(worker: LayeredConfig, expand: Expand) -> None:
    """Add the values that a worker gets because its cluster is Event Hubs."""
    _add_event_hubs_values(worker, event_hubs_worker_defaults, expand)


def _add_event_hubs_values(
    layers: LayeredConfig,
    defaults: Callable[[Mapping[str, str]], Mapping[str, str]],
    expand: Expand,
) -> None:
    props = layers.props
    servers = {key: value for key, value in props.items() if key == BOOTSTRAP_SERVERS}
    origin = ConfigOrigin(rule=PrecedenceRule.EVENT_HUBS)
    for name, value in defaults({**props, **expand(servers)}).items():
        layers.add_fallback(name, CandidateValue(value=value, origin=origin))


def _override_with_prefix(layers: LayeredConfig, config: LayeredConfig, prefix: str) -> None:
    for key in config:
        if key.startswith(prefix) and key != prefix:
            _override(layers, key.removeprefix(prefix), config, key)


def _override(layers: LayeredConfig, name: str, config: LayeredConfig, key: str) -> None:
    if key in config:
        layers.add_override(name, *config[key].candidates)


def _derived(value: str) -> CandidateValue:
    return CandidateValue(value=value, origin=ConfigOrigin(rule=PrecedenceRule.DERIVED))
