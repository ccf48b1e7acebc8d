"""The worker's settings that the herder needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from sparkmirror.config.definition.connector_config_validation import (
    TransformationFaults,
    WorkerCapabilities,
)
from sparkmirror.config.definition.value_types import ParsedValue, split_list
from sparkmirror.config.plugin_module_allowlist import NO_PLUGIN_MODULES, PluginModuleAllowlist
from sparkmirror.connect.connectors.source.dead_letter_topics import transformation_faults
from sparkmirror.connect.internal_requests.inter_worker_settings import InterWorkerSettings

OVERRIDE_ALLOWLIST = "connector.client.config.override.allowlist"
REQUEST_TIMEOUT_S = 90.0
WRITE_TIMEOUT_S = 9.5
HEALTH_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """One worker's identity, capabilities and timeouts."""

    worker_id: str
    """`host:port` of its REST server; in dedicated mode also the flow."""
    group_id: str
    client_id: str = ""
    capabilities: WorkerCapabilities = WorkerCapabilities()
    tracks_topics: bool = True
    allows_topic_reset: bool = True
    stop_timeout_s: float = 5.0
    """How long a connector or its tasks may take to stop."""
    request_timeout_s: float = REQUEST_TIMEOUT_S
    """How long a request may wait for connectors and tasks."""
    write_timeout_s: float = WRITE_TIMEOUT_S
    """How long a request may wait for the start of the worker, for its turn and for its write; and
    for connectors and tasks while the worker has a problem."""
    health_timeout_s: float = HEALTH_TIMEOUT_S
    """How long the herder thread may take for its oldest action. Then the worker is unhealthy."""
    inter_worker: InterWorkerSettings = InterWorkerSettings()
    """How requests between the workers of the group are signed."""

    @property
    def log_prefix(self) -> str:
        """Connect's prefix of the herder's log lines."""
        client = self.client_id or f"connect-{self.worker_id}"
        return f"[Worker clientId={client}, groupId={self.group_id}] "

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, ParsedValue],
        worker_id: str,
        file_values: Mapping[str, str] = MappingProxyType({}),
        plugin_modules: PluginModuleAllowlist = NO_PLUGIN_MODULES,
        transformation_faults: TransformationFaults = transformation_faults,
    ) -> Self:
        """Read the parsed config of a worker (`config.files.worker_file`).

        `file_values` are all values of its file, expanded: the override policy reads keys that the
        worker's config table does not have. `plugin_modules` are those of the whole process.
        `transformation_faults` may also ask Spark about the query of a connector.
        """
        return cls(
            worker_id=worker_id,
            group_id=str(config["group.id"]),
            client_id=str(config.get("client.id") or ""),
            capabilities=WorkerCapabilities(
                exactly_once=str(config["exactly.once.source.support"]).lower() == "enabled",
                override_policy=str(config["connector.client.config.override.policy"]),
                override_allowlist=split_list(file_values.get(OVERRIDE_ALLOWLIST, "")),
                plugin_modules=plugin_modules,
                transformation_faults=transformation_faults,
            ),
            tracks_topics=config["topic.tracking.enable"] is True,
            allows_topic_reset=config["topic.tracking.allow.reset"] is True,
            stop_timeout_s=_milliseconds(config, "task.shutdown.graceful.timeout.ms") / 1000,
            inter_worker=InterWorkerSettings.from_config(config),
        )


def _milliseconds(config: Mapping[str, ParsedValue], name: str) -> int:
    value = config[name]
    assert isinstance(value, int)
    return value
