"""The properties of a connector's clients, each with the key of the file that set it.

`client_configs` computes the same properties without their origins.
"""

from __future__ import annotations

from sparkmirror.config.client_configs import (
    BOOTSTRAP_SERVERS,
    DEFAULT_CONSUMER_CONFIG,
    FIXED_CONSUMER_CONFIG,
    WORKER_PRODUCER_PREFIX,
    ClientType,
    ConnectorClient,
)
from sparkmirror.config.definition.override_policy import PRODUCER_OVERRIDE_PREFIX
from sparkmirror.config.event_hubs import event_hubs_defaults
from sparkmirror.config.files.provenance import (
    CandidateValue,
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
)
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES


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


def worker_producer_layers(worker: LayeredConfig, connector: LayeredConfig) -> LayeredConfig:
    """The properties of the worker's producer for one connector, from both compiled configs."""
    layers = LayeredConfig()
    _override(layers, BOOTSTRAP_SERVERS, worker, BOOTSTRAP_SERVERS)
    _override_with_prefix(layers, worker, WORKER_PRODUCER_PREFIX)
    _override_with_prefix(layers, connector, PRODUCER_OVERRIDE_PREFIX)
    origin = ConfigOrigin(rule=PrecedenceRule.EVENT_HUBS)
    for name, value in event_hubs_defaults(layers.props).items():
        layers.add_fallback(name, CandidateValue(value=value, origin=origin))
    return layers


def _override_with_prefix(layers: LayeredConfig, config: LayeredConfig, prefix: str) -> None:
    for key in config:
        if key.startswith(prefix) and key != prefix:
            _override(layers, key.removeprefix(prefix), config, key)


def _override(layers: LayeredConfig, name: str, config: LayeredConfig, key: str) -> None:
    if key in config:
        layers.add_override(name, *config[key].candidates)


def _derived(value: str) -> CandidateValue:
    return CandidateValue(value=value, origin=ConfigOrigin(rule=PrecedenceRule.DERIVED))
