"""A KafkaMirrorMaker2 of Strimzi as the properties of an mm2.properties. Pure.

Versions: `v1` has `target` and `mirrors[].source`; `v1beta2` and older ones have `clusters`, and
the mirrors name their aliases. Strimzi runs only the connectors that a mirror has, so the file
switches off the others. Group and topics of the workers of Strimzi are not carried over: a
dedicated mirror has its own for each flow, and continues behind the last copied record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sparkmirror.cli.strimzi.config_provider_kinds import provider_kinds
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.api_versions import check_version
from sparkmirror.cli.strimzi.resource_to_properties.cluster_properties import (
    WORKER_TEXT,
    cluster_properties,
)
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.cli.strimzi.resource_to_properties.left_out_fields import unread_remarks
from sparkmirror.cli.strimzi.resource_to_properties.misplaced_fields import misplaced_field_faults
from sparkmirror.cli.strimzi.resource_to_properties.oauth_authentication import allowed_resources
from sparkmirror.cli.strimzi.resource_to_properties.pod_files_and_variables import read_pod
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields
from sparkmirror.cli.strimzi.resource_to_properties.strimzi_placeholders import StrimziPlaceholders
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.errors import ConfigFault

KIND: Final = "KafkaMirrorMaker2"
PATTERNS: Final = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
}
_OLD_PATTERNS: Final = {
    "topicsBlacklistPattern": "topics.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
_CONNECTORS: Final = ("sourceConnector", "checkpointConnector", "heartbeatConnector")
_WORKER_FIELDS: Final = (
    "groupId",
    "configStorageTopic",
    "offsetStorageTopic",
    "statusStorageTopic",
)
ALIAS: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
"""The aliases that Strimzi accepts."""
CONNECTOR_FIELDS: Final = frozenset({"name", "connector.class", "tasks.max"})
"""Keys that Strimzi refuses in the config of a connector."""
_STATES: Final = {
    "paused": "the connector starts: PUT /connectors/<name>/pause after the start",
    "stopped": "the connector starts: PUT /connectors/<name>/stop after the start",
}
_REPLICAS_TEXT: Final = (
    "start as many processes with this file; give it listeners that they can reach each other at"
)


class MirrorMaker2Import:
    """Collects clusters and flows from resources."""

    def __init__(
        self, secrets: SecretFiles, faults: list[ConfigFault], remarks: list[StrimziRemark]
    ) -> None:
        self._secrets = secrets
        self._faults = faults
        self._remarks = remarks
        self._clusters: dict[str, dict[str, str]] = {}
        self._flows: dict[str, dict[str, str]] = {}
        self._is_shared = False

    def properties(self) -> dict[str, str]:
        """Return the properties in the order in which a person would write them."""
        properties = {"clusters": ",".join(self._clusters)}
        properties |= self._secrets.provider_properties()
        properties |= allowed_resources(self._clusters.values())
        for alias, settings in self._clusters.items():
            properties |= {f"{alias}.{key}": value for key, value in settings.items()}
        properties["emit.heartbeats.enabled"] = "false"
        if self._is_shared:
            properties["dedicated.mode.enable.internal.rest"] = "true"
        for flow, settings in self._flows.items():
            properties |= {f"{flow}.{key}": value for key, value in settings.items()}
        return properties

    def read(self, resource: ResourceFields) -> None:
        """Read one KafkaMirrorMaker2."""
        self._remarks += check_version(resource)
        resource.text("kind")
        resource.part("metadata")
        resource.part("status")
        if not isinstance(resource.raw("spec"), dict):
            resource.fault("spec", "is missing or has no fields: check the indentation below it")
            return
        spec = resource.part("spec")
        self._faults += misplaced_field_faults(spec)
        pod = read_pod(spec, self._remarks)
        placeholders = StrimziPlaceholders(
            secrets=self._secrets,
            pod=pod,
            kinds=provider_kinds(_config_of_workers(spec)),
            remarks=self._remarks,
        )
        if "target" in spec:
            self._read_v1(spec, placeholders)
        else:
            self._read_v1beta2(spec, placeholders)
        self._read_replicas(spec)
        self._remarks += unread_remarks(spec)
        self._remarks += unread_remarks(resource)
        self._remarks += pod.unused_remarks()

    def _remark(self, field: str, text: str) -> None:
        self._remarks.append(StrimziRemark(field, text))

    def _read_replicas(self, spec: ResourceFields) -> None:
        replicas = spec.number("replicas")
        if replicas == 0:
            self._remark(spec.path_of("replicas"), "no pod runs, but a process with the file does")
        elif replicas is not None and replicas > 1:
            self._is_shared = True
            self._remark(spec.path_of("replicas"), _REPLICAS_TEXT)

    def _read_v1(self, spec: ResourceFields, placeholders: StrimziPlaceholders) -> None:
        for name in ("clusters", "connectCluster"):
            if name in spec:
                spec.fault(name, "belongs to the old layout, but spec.target is there: remove one")
                spec.ignore(name)
        target = spec.part("target")
        for name in _WORKER_FIELDS:
            if target.text(name) is not None:
                self._remark(target.path_of(name), WORKER_TEXT)
        target_alias = self._read_cluster(target, placeholders, has_workers=True)
        for mirror in self._mirrors(spec):
            if "source" not in mirror:
                mirror.fault("source", "is missing")
                continue
            source = mirror.part("source")
            source_alias = self._read_cluster(source, placeholders, has_workers=False)
            self._read_flow(mirror, source_alias, target_alias, placeholders)

    def _read_v1beta2(self, spec: ResourceFields, placeholders: StrimziPlaceholders) -> None:
        if "clusters" not in spec:
            spec.fault("clusters", "is missing (target in version v1)")
        connect = spec.text("connectCluster")
        read = [
            self._read_cluster(one, placeholders, has_workers=one.text("alias") == connect)
            for one in spec.items("clusters")
        ]
        for at, alias in enumerate(read):
            if alias and alias in read[:at]:
                spec.fault(f"clusters[{at}].alias", f"{alias} is the alias of another cluster")
        if connect is not None and connect not in read:
            spec.fault("connectCluster", f"no cluster of spec.clusters has the alias {connect}")
        for mirror in self._mirrors(spec):
            source = mirror.required_text("sourceCluster")
            target = mirror.required_text("targetCluster")
            for name, alias in (("sourceCluster", source), ("targetCluster", target)):
                if alias and alias not in read:
                    mirror.fault(name, f"no cluster of spec.clusters has the alias {alias}")
            self._read_flow(mirror, source, target, placeholders)

    def _mirrors(self, spec: ResourceFields) -> list[ResourceFields]:
        mirrors = spec.items("mirrors")
        if not mirrors:
            spec.fault("mirrors", "is missing or has no item")
        for mirror in mirrors:
            self._faults += misplaced_field_faults(mirror)
        return mirrors

    def _read_cluster(
        self, cluster: ResourceFields, placeholders: StrimziPlaceholders, *, has_workers: bool
    ) -> str:
        alias = cluster.required_text("alias")
        if alias and not ALIAS.fullmatch(alias):
            text = "has letters that an alias cannot have; use A-Z, a-z, 0-9, '.', '_' and '-'"
            cluster.fault("alias", f"{alias} {text}")
        properties = cluster_properties(
            cluster, placeholders, self._remarks, has_workers=has_workers
        )
        known = self._clusters.setdefault(alias, properties)
        if different := _different_keys(known, properties):
            cluster.fault(
                "alias",
                f"{alias} is another cluster elsewhere, with another {', '.join(different)}; "
                "import the resources one by one with --name",
            )
        self._clusters[alias] = known | properties
        return alias

    def _read_flow(
        self,
        mirror: ResourceFields,
        source: str,
        target: str,
        placeholders: StrimziPlaceholders,
    ) -> None:
        flow = f"{source}->{target}"
        if flow in self._flows:
            mirror.fault("", f"the flow {flow} is there twice")
        if source and source == target:
            mirror.fault("", f"source and target are the same cluster, {source}")
        properties = {"enabled": "true", **_patterns(mirror, placeholders)}
        for name in _CONNECTORS:
            if name in mirror:
                self._read_connector(mirror.part(name), properties, placeholders)
        if "sourceConnector" not in mirror:
            text = "is missing, but a flow of a file always copies: set topics to what it may copy"
            self._remark(mirror.path_of("sourceConnector"), text)
        if "checkpointConnector" not in mirror:
            properties["emit.checkpoints.enabled"] = "false"
        if "heartbeatConnector" in mirror:
            properties["emit.heartbeats.enabled"] = "true"
        self._remarks += unread_remarks(mirror)
        self._flows[flow] = properties

    def _read_connector(
        self,
        connector: ResourceFields,
        properties: dict[str, str],
        placeholders: StrimziPlaceholders,
    ) -> None:
        """Add the settings of a connector. A flow has one value for all its connectors."""
        settings = connector.settings("config")
        for key in sorted(CONNECTOR_FIELDS & settings.keys()):
            del settings[key]
            text = "Strimzi refuses this key; the field tasksMax has the number of tasks"
            self._remark(connector.path_of(f"config.{key}"), text)
        tasks = connector.number("tasksMax")
        if tasks is not None:
            settings["tasks.max"] = str(tasks)
        for key, value in settings.items():
            name = "tasksMax" if key == "tasks.max" else f"config.{key}"
            written = placeholders.translated(value, connector.path_of(name))
            kept = properties.setdefault(key, written)
            if kept != written:
                shown, used = redact_value(key, value), redact_value(key, kept)
                text = f"{shown} is left out: a flow has one {key} for all connectors, {used}"
                self._remark(connector.path_of(name), text)
        self._read_state(connector)
        self._remarks += unread_remarks(connector)

    def _read_state(self, connector: ResourceFields) -> None:
        if connector.text("pause") == "true":
            self._remark(connector.path_of("pause"), _STATES["paused"])
        state = connector.text("state")
        if state in _STATES:
            self._remark(connector.path_of("state"), _STATES[state])
        elif state not in {None, "running"}:
            connector.fault("state", f"{state} is no state; write running, paused or stopped")


def _patterns(mirror: ResourceFields, placeholders: StrimziPlaceholders) -> dict[str, str]:
    """Return the topics and groups of a mirror; a new name wins over an old one."""
    patterns = {}
    for name, key in [*_OLD_PATTERNS.items(), *PATTERNS.items()]:
        pattern = mirror.text(name)
        if pattern is not None:
            patterns[key] = placeholders.translated(pattern, mirror.path_of(name))
    return patterns


def _config_of_workers(spec: ResourceFields) -> dict[str, str]:
    """Return the config of the cluster that the workers of Strimzi belong to."""
    clusters = spec.raw("clusters")
    candidates = [spec.raw("target"), *(clusters if isinstance(clusters, list) else [])]
    alias = spec.raw("connectCluster")
    for cluster in candidates:
        if isinstance(cluster, dict) and ("target" in spec or cluster.get("alias") == alias):
            config = cluster.get("config")
            return {str(k): str(v) for k, v in config.items()} if isinstance(config, dict) else {}
    return {}


def _different_keys(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the keys in which two clusters with one alias differ.

    As the target of one mirror a cluster has settings of workers, as the source of another it has
    none of them. Address and security must be the same.
    """
    common = (one.keys() & other.keys()) | ((one.keys() | other.keys()) & {*CLIENT_SECURITY_NAMES})
    return sorted(key for key in common if one.get(key) != other.get(key))
