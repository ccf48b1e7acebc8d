"""An mm2.properties as KafkaMirrorMaker2 resources: one for each target. Pure.

Strimzi runs the connectors on workers of the target. A source connector writes its records with
the producer of the worker, so producer, consumer and admin settings of the target are in the
config of the target; those of a source are in the config of the connectors.

Invariant: each key of the file is in a resource, or in a remark.
"""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.cli.strimzi.config_provider_kinds import provider_kinds
from sparkmirror.cli.strimzi.properties_to_resource.cluster_fields import (
    CLIENT_PREFIXES,
    ClusterFields,
)
from sparkmirror.cli.strimzi.properties_to_resource.cluster_settings import (
    ClusterSettings,
    WrittenSetting,
)
from sparkmirror.cli.strimzi.properties_to_resource.connector_settings import ConnectorSettings
from sparkmirror.cli.strimzi.properties_to_resource.kubernetes_names import (
    UniqueNames,
    is_resource_name,
    resource_name,
)
from sparkmirror.cli.strimzi.properties_to_resource.left_out_keys import left_out_reason
from sparkmirror.cli.strimzi.properties_to_resource.pod_variables import PodVariables
from sparkmirror.cli.strimzi.properties_to_resource.secret_names import SecretNames
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.api_versions import (
    API_GROUP,
    V1,
    V1BETA2,
)
from sparkmirror.cli.strimzi.resource_to_properties.mirror_maker_2_import import (
    ALIAS,
    KIND,
    PATTERNS,
)
from sparkmirror.config.files.flow_config_precedence import WORKER_PREFIXES
from sparkmirror.config.files.mirror_maker_config import (
    CLUSTERS,
    EMIT_HEARTBEATS,
    ENABLED,
    MirrorMakerConfig,
)
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.errors import ConfigError, ConfigFault
from sparkmirror.model import SourceAndTarget

_WORKERS: Final = "mirrormaker2-cluster"
_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"
_TASKS_MAX: Final = "tasks.max"
_FIELDS_OF_MIRROR: Final = {key: name for name, key in PATTERNS.items()}
_CONNECTOR_FIELDS: Final = {
    FlowPart.SOURCE: "sourceConnector",
    FlowPart.CHECKPOINT: "checkpointConnector",
    FlowPart.HEARTBEAT: "heartbeatConnector",
}
_NO_HEARTBEATS: Final = "version v1 has no heartbeatConnector; its mirrors emit no heartbeats"


class ResourceExport:
    """Makes the resources of a file. `remarks` has what is left out or to be created.

    `config` is lenient: a placeholder without a value stays as text.
    """

    def __init__(
        self, config: MirrorMakerConfig, *, name: str, version: str, secrets_directory: str
    ) -> None:
        assert version in {V1, V1BETA2}
        self._config = config
        self._name = name
        self._version = version
        self._written = {key: one.value for key, one in config.file_values.items()}
        self._used: set[str] = {CLUSTERS}
        self.remarks: list[StrimziRemark] = []
        kinds = provider_kinds(self._written)
        self._secrets = SecretNames(secrets_directory, kinds, self._written.values(), self.remarks)

    def resources(self) -> list[dict[str, Any]]:
        """Return a resource for each target.

        Raises ConfigError if no flow is enabled, or if Strimzi refuses a name.
        """
        flows = [flow for flow in self._config.cluster_pairs if self._is_on(flow, ENABLED, "false")]
        self._require_valid(flows)
        targets = list(dict.fromkeys(flow.target for flow in flows))
        names = UniqueNames()
        made = []
        for target in targets:
            name = self._name
            if len(targets) > 1:
                name = names.name_of(target, resource_name(f"{self._name}-{target}"))
            of_target = [flow for flow in flows if flow.target == target]
            made.append(self._resource(name, target, of_target))
        self._add_unused_remarks(flows)
        self.remarks = list(dict.fromkeys(self.remarks))
        return made

    def _require_valid(self, flows: list[SourceAndTarget]) -> None:
        where = self._config.properties.file
        if not flows:
            raise ConfigError.of(CLUSTERS, self._config.no_flows_message(), where=where)
        faults = []
        if not is_resource_name(self._name):
            text = (
                f"--name {self._name}: Kubernetes refuses this name; use at most 63 lower case "
                "letters, digits and '-'"
            )
            faults.append(ConfigFault("", text))
        for alias in sorted({alias for flow in flows for alias in (flow.source, flow.target)}):
            if not ALIAS.fullmatch(alias):
                text = f"Strimzi refuses the alias {alias}; use letters, digits, '.', '_' and '-'"
                faults.append(ConfigFault(CLUSTERS, text))
        if faults:
            raise ConfigError(faults, where=where)

    def _resource(self, name: str, target: str, flows: list[SourceAndTarget]) -> dict[str, Any]:
        pod = PodVariables(self._secrets, self._written.values(), self.remarks)
        spec: dict[str, Any] = {"replicas": 1}
        if self._version == V1:
            cluster = self._cluster(target, pod, is_target=True)
            cluster |= {
                "groupId": _WORKERS,
                "configStorageTopic": f"{_WORKERS}-configs",
                "offsetStorageTopic": f"{_WORKERS}-offsets",
                "statusStorageTopic": f"{_WORKERS}-status",
            }
            spec["target"] = cluster
        else:
            spec["connectCluster"] = target
            sources = [self._cluster(flow.source, pod, is_target=False) for flow in flows]
            spec["clusters"] = [*sources, self._cluster(target, pod, is_target=True)]
        spec["mirrors"] = [self._mirror(flow, pod) for flow in flows]
        if template := pod.template():
            spec["template"] = template
        return {
            "apiVersion": f"{API_GROUP}{self._version}",
            "kind": KIND,
            "metadata": {"name": name},
            "spec": spec,
        }

    def _cluster(self, alias: str, pod: PodVariables, *, is_target: bool) -> dict[str, Any]:
        settings = {
            name: self._setting(name) for name in CLIENT_SECURITY_NAMES if name in self._written
        }
        for key in self._written:
            if self._alias_of(key) == alias:
                settings[key.removeprefix(f"{alias}.")] = self._setting(key)
        for key in self._written if is_target else ():
            if key.startswith(WORKER_PREFIXES) and FlowPart.WORKER.reads(key):
                settings[key] = self._setting(key)
        if not is_target:  # the connectors have what is for a client
            settings = {k: one for k, one in settings.items() if not k.startswith(CLIENT_PREFIXES)}
        self._used |= {setting.origin for setting in settings.values()}
        taken = ClusterSettings(alias, settings, self._expanded, self.remarks)
        return ClusterFields(taken, pod).fields()

    def _setting(self, key: str) -> WrittenSetting:
        found = self._config.file_values[key]
        return WrittenSetting(found.value, found.origin.key)

    def _alias_of(self, key: str) -> str | None:
        """Return the alias that a key begins with; the longest one of several."""
        found = [alias for alias in self._config.clusters if key.startswith(f"{alias}.")]
        return max(found, key=len, default=None)

    def _mirror(self, flow: SourceAndTarget, pod: PodVariables) -> dict[str, Any]:
        mirror: dict[str, Any] = {}
        if self._version == V1:
            mirror["source"] = self._cluster(flow.source, pod, is_target=False)
        else:
            mirror |= {"sourceCluster": flow.source, "targetCluster": flow.target}
        settings = ConnectorSettings(self._config, flow)
        for part, name in _CONNECTOR_FIELDS.items():
            found = settings.of_part(part)
            for key in [key for key in found if key in _FIELDS_OF_MIRROR]:
                value, origin = found.pop(key)
                mirror[_FIELDS_OF_MIRROR[key]] = pod.translated(value, origin)
                self._used.add(origin)
            if self._has_connector(flow, part):
                self._used |= {setting.origin for setting in found.values()}
                mirror[name] = self._connector(found, flow, pod)
        return mirror

    def _connector(
        self, settings: dict[str, WrittenSetting], flow: SourceAndTarget, pod: PodVariables
    ) -> dict[str, Any]:
        connector: dict[str, Any] = {}
        tasks = settings.pop(_TASKS_MAX, None)
        if tasks is not None:
            number = self._expanded(tasks.value).strip()
            if number.isascii() and number.isdecimal():
                connector["tasksMax"] = int(number)
            else:
                self.remarks.append(StrimziRemark(tasks.origin, "is not a number: set tasksMax"))
        config = {
            key: pod.text(key, value, str(flow), "connectors", origin)
            for key, (value, origin) in settings.items()
        }
        return connector | ({"config": config} if config else {})

    def _has_connector(self, flow: SourceAndTarget, part: FlowPart) -> bool:
        if part is FlowPart.SOURCE:
            return True
        if part is FlowPart.CHECKPOINT:
            return self._is_on(flow, _EMIT_CHECKPOINTS, "true")
        is_on = self._is_on(flow, EMIT_HEARTBEATS, "true")
        if is_on and self._version == V1:
            origin = self._origin_of_switch(flow, EMIT_HEARTBEATS)
            field = origin or f"{flow}.{EMIT_HEARTBEATS}"
            self.remarks.append(StrimziRemark(field, _NO_HEARTBEATS))
        return is_on and self._version != V1

    def _is_on(self, flow: SourceAndTarget, key: str, default: str) -> bool:
        """Return a switch of a flow. That for all flows counts, but none enables all of them."""
        origin = self._origin_of_switch(flow, key)
        if origin is None:
            return default == "true"
        is_on = self._expanded(self._written[origin]).lower() == "true"
        if is_on or key != ENABLED:
            self._used.add(origin)
        return is_on

    def _origin_of_switch(self, flow: SourceAndTarget, key: str) -> str | None:
        names = [f"{flow}.{key}"] if key == ENABLED else [f"{flow}.{key}", key]
        return next((name for name in names if name in self._written), None)

    def _expanded(self, value: str) -> str:
        return self._config.expand({"": value}).values[""]

    def _add_unused_remarks(self, flows: list[SourceAndTarget]) -> None:
        known = self._used | {remark.field for remark in self.remarks}
        for key, value in self._config.properties.mapping.items():
            if key not in known and (reason := left_out_reason(key, value, self._config, flows)):
                self.remarks.append(StrimziRemark(key, reason))
