"""The router of a task or of the driver, made from the options of the user.

Placeholders are resolved in the process that connects, so that a secret need not travel.
"""

from __future__ import annotations

from sparkmirror.copy.client_config_resolver import resolve_client, resolve_producer_limits
from sparkmirror.datasource.options import ClientOptions
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.net.routing import Router


def new_router(client: ClientOptions) -> Router:
    """Return a router for one thread. It connects with its first call. Raises ConfigError."""
    config, bootstrap = resolve_client(client.cluster, client.properties, client.client_id)
    return Router(config, bootstrap)


def producer_codec(client: ClientOptions) -> CompressionType:
    """Return the codec that `compression.type` names. Raises ConfigError."""
    return resolve_producer_limits(client.cluster, client.properties).fallback_codec
