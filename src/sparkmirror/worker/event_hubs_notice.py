"""Says which values a worker uses because its cluster is Azure Event Hubs."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.config.event_hubs_defaults import event_hubs_worker_defaults

log = logging.getLogger(__name__)


def log_event_hubs_values(cluster: str, properties: Mapping[str, str]) -> None:
    """Log the values that the properties of a worker lack, if there are any."""
    if applied := event_hubs_worker_defaults(properties):
        log.info(
            "%s is Azure Event Hubs: the worker uses %s, because the file does not set these keys",
            cluster,
            ", ".join(f"{key}={value}" for key, value in applied.items()),
        )
