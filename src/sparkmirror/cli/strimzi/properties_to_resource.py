"""An mm2.properties as KafkaMirrorMaker2 resources: one for each target. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sparkmirror.cli.strimzi.mirror_maker_2_resource import API_GROUP, KIND, PATTERNS
from sparkmirror.cli.strimzi.properties_to_cluster import CLIENT_PREFIXES, ClusterExport
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.config.files.flow_config_precedence import CONFIG_PROVIDERS_PREFIX
from sparkmirror.config.files.mirror_maker_config import (
    CLUSTERS,
    EMIT_HEARTBEATS,
    ENABLED,
    INTERNAL_REST,
    MirrorMakerConfig,
)
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.secrets.redaction import is_secret
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

V1: Final = "v1"
V1BETA2: Final = "v1beta2"
_WORKERS: Final = "mirrormaker2-cluster"
_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"
_TASKS_MAX: Final = "tasks.max"
_CLUSTER_PREFIXES: Final = ("source.cluster.", "target.cluster.")
_FIELDS_OF_MIRROR: Final = {key: name for name, key in PATTERNS.items()}
_SWITCHES: Final = frozenset({ENABLED, EMIT_HEARTBEATS, _EMIT_CHECKPOINTS})
_CONNECTOR_FIELDS: Final = {
    FlowPart.SOURCE: "sourceConnector",
    FlowPart.CHECKPOINT: "checkpointConnector",
    FlowPart.HEARTBEAT: "heartbeatConnector",
}


class ResourceExport:
    """Makes the resources of a file. `remarks` has what is left out or to be created."""

    def __init__(
        self, config: MirrorMakerConfig, *, name: str, version: str, secrets_directory: str
    ) -> None:
        assert version in {V1, V1BETA2}
        self._config = config
        self._name = name
        self._version = version
        self._secrets_directory = secrets_directory
        self._written = {key: one.value for key, one in config.file_values.items()}
        self._used: set[str] = {CLUSTERS, INTERNAL_REST, *_SWITCHES}
        self.remarks: list[StrimziRemark] = []

    def resources(self) -> list[dict[str, Any]]:
        """Return a resource for each target. Raises ConfigError if no flow is enabled."""
        flows = [flow for flow in self._config.cluster_pairs if self._is_on(flow, ENABLED, "false")]
        if not flows:
            raise ConfigError.of(
                CLUSTERS, self._config.no_flows_message(), where=self._config.properties.file
            )
        targets = list(dict.fromkeys(flow.target for flow in flows))
        made = [
            self._resource(target, [flow for flow in flows if flow.target == target])
            for target in targets
        ]
        if len(made) > 1:
            for resource, target in zip(made, targets, strict=True):
                resource["metadata"]["name"] = f"{self._name}-{target}"
        self._add_unused_remarks()
        self.remarks = list(dict.fromkeys(self.remarks))
        return made

    def _resource(self, target: str, flows: list[SourceAndTarget]) -> dict[str, Any]:
        spec: dict[str, Any] = {"replicas": 1}
        if self._version == V1:
            cluster = self._cluster(target)
            cluster |= {
                "groupId": _WORKERS,
                "configStorageTopic": f"{_WORKERS}-configs",
                "offsetStorageTopic": f"{_WORKERS}-offsets",
                "statusStorageTopic": f"{_WORKERS}-status",
            }
            spec["target"] = cluster
        else:
            spec["connectCluster"] = target
            aliases = [*(flow.source for flow in flows), target]
            spec["clusters"] = [self._cluster(alias) for alias in aliases]
        spec["mirrors"] = [self._mirror(flow) for flow in flows]
        return {
            "apiVersion": f"{API_GROUP}{self._version}",
            "kind": KIND,
            "metadata": {"name": self._name},
            "spec": spec,
        }

    def _cluster(self, alias: str) -> dict[str, Any]:
        own = {
            key.removeprefix(f"{alias}."): value
            for key, value in self._written.items()
            if key.startswith(f"{alias}.")
        }
        self._used |= {f"{alias}.{key}" for key in own}
        shared = {key: self._written[key] for key in CLIENT_SECURITY_NAMES if key in self._written}
        self._used |= set(shared)
        return ClusterExport(alias, shared | own, self._secrets_directory, self.remarks).fields()

    def _mirror(self, flow: SourceAndTarget) -> dict[str, Any]:
        mirror: dict[str, Any] = {}
        if self._version == V1:
            mirror["source"] = self._cluster(flow.source)
        else:
            mirror |= {"sourceCluster": flow.source, "targetCluster": flow.target}
        for part, name in _CONNECTOR_FIELDS.items():
            settings = self._settings(flow, part)
            for key in [key for key in settings if key in _FIELDS_OF_MIRROR]:
                mirror[_FIELDS_OF_MIRROR[key]] = settings.pop(key)
            if self._has_connector(flow, part):
                mirror[name] = _connector(settings)
        self._used |= {key for key in self._written if key in {f"{flow}.{s}" for s in _SWITCHES}}
        return mirror

    def _settings(self, flow: SourceAndTarget, part: FlowPart) -> dict[str, str]:
        """Return what the file says about a connector, without its clusters and switches."""
        connector = part.connector
        assert connector is not None
        settings = {}
        for key, setting in self._config.layered_connector_config(flow, connector).items():
            origin = setting.origin.key
            if not origin or key in _SWITCHES or key.startswith(_CLUSTER_PREFIXES):
                continue
            if not part.reads(key) or key.startswith(CONFIG_PROVIDERS_PREFIX):
                continue
            if self._is_of_cluster(origin) or origin in CLIENT_SECURITY_NAMES:
                continue
            self._used.add(origin)
            if is_secret(key):
                text = "is a secret; write it into the config of the connectors with a placeholder"
                self.remarks.append(StrimziRemark(origin, text))
            else:
                settings[key] = setting.value
        return settings

    def _is_of_cluster(self, key: str) -> bool:
        """Whether a key is that of a cluster itself, not of its consumer, producer or admin."""
        prefixes = tuple(f"{alias}." for alias in self._config.clusters)
        found = next((prefix for prefix in prefixes if key.startswith(prefix)), None)
        return found is not None and not key.removeprefix(found).startswith(CLIENT_PREFIXES)

    def _has_connector(self, flow: SourceAndTarget, part: FlowPart) -> bool:
        if part is FlowPart.CHECKPOINT:
            return self._is_on(flow, _EMIT_CHECKPOINTS, "true")
        if part is FlowPart.SOURCE or not self._is_on(flow, EMIT_HEARTBEATS, "true"):
            return part is FlowPart.SOURCE
        if self._version == V1:
            text = "version v1 has no heartbeatConnector; its mirrors emit no heartbeats"
            self.remarks.append(StrimziRemark(f"{flow}.{EMIT_HEARTBEATS}", text))
            return False
        return True

    def _is_on(self, flow: SourceAndTarget, key: str, default: str) -> bool:
        """Return a switch of a flow. That for all flows counts, but none enables all of them."""
        for_all = default if key == ENABLED else self._written.get(key, default)
        return self._written.get(f"{flow}.{key}", for_all).lower() == "true"

    def _add_unused_remarks(self) -> None:
        for key in self._written:
            if key.startswith(CONFIG_PROVIDERS_PREFIX):
                self._used.add(key)
        unused = [key for key in self._written if key not in self._used]
        text = "is not carried over: it belongs to this process or to a flow that is not enabled"
        self.remarks += [StrimziRemark(key, text) for key in unused]


def _connector(settings: Mapping[str, str]) -> dict[str, Any]:
    config = {key: value for key, value in settings.items() if key != _TASKS_MAX}
    connector: dict[str, Any] = {}
    if settings.get(_TASKS_MAX, "").isdecimal():
        connector["tasksMax"] = int(settings[_TASKS_MAX])
    if config:
        connector["config"] = config
    return connector
