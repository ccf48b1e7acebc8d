"""A KafkaMirrorMaker2 of Strimzi as the properties of an mm2.properties. Pure.

Versions: `v1` has `target` and `mirrors[].source`; `v1beta2` and older ones have `clusters`, and
the mirrors name their aliases. Strimzi runs only the connectors that a mirror has, so the file
switches off the others. Group and topics of the workers of Strimzi are not carried over: a
dedicated mirror has its own for each flow, and continues behind the last copied record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sparkmirror.cli.strimzi.cluster_properties import WORKER_TEXT, cluster_properties
from sparkmirror.cli.strimzi.kubernetes_secret_files import (
    DIRECTORY_PROVIDER,
    SecretFiles,
    SecretKey,
)
from sparkmirror.cli.strimzi.misplaced_fields import fragment_faults, misplaced_field_faults
from sparkmirror.cli.strimzi.remarks import StrimziRemark, unread_remarks
from sparkmirror.cli.strimzi.resource_fields import ResourceFields
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.errors import ConfigError, ConfigFault

KIND: Final = "KafkaMirrorMaker2"
API_GROUP: Final = "kafka.strimzi.io/"
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
_REPLICAS_TEXT: Final = (
    "start as many processes with this file; give it listeners that they can reach each other at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMirror:
    """The properties of an import, what it left out, and the keys of Secrets that it needs."""

    properties: dict[str, str] = field(repr=False)
    remarks: tuple[StrimziRemark, ...]
    needed_keys: tuple[SecretKey, ...]


def import_resources(
    documents: Iterable[Any], secrets: SecretFiles, where: str, name: str | None = None
) -> ImportedMirror:
    """Return the mirrors of all KafkaMirrorMaker2 resources, or of the one with a name.

    Raises ConfigError with all faults if there is none, or if one is wrong.
    """
    faults: list[ConfigFault] = []
    remarks: list[StrimziRemark] = []
    reader = _MirrorReader(secrets, faults, remarks)
    found = 0
    for document in documents:
        if isinstance(document, dict) and "kind" not in document:
            faults += fragment_faults(document)
        elif _is_mirror(document) and name in (None, _name(document)):
            found += 1
            reader.read(ResourceFields(document, "", faults))
        elif isinstance(document, dict) and not _is_mirror(document):
            text = f"{document.get('kind')} {_name(document)} is not read"
            remarks.append(StrimziRemark("kind", text))
    if not found and not faults:
        which = f" named {name}" if name else ""
        faults.append(ConfigFault("kind", f"there is no resource of kind {KIND}{which}"))
    if faults:
        raise ConfigError(faults, where=where)
    return ImportedMirror(
        properties=reader.properties(),
        remarks=tuple(dict.fromkeys(remarks)),
        needed_keys=tuple(secrets.used),
    )


def listed_resources(documents: Iterable[Any]) -> list[Any]:
    """Return the documents, and in place of a List its items: `kubectl get -o yaml` prints one."""
    resources: list[Any] = []
    for document in documents:
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            resources += document["items"]
        else:
            resources.append(document)
    return resources


def secret_keys_of(documents: Iterable[Any]) -> dict[str, list[str]]:
    """Return the keys of the Secrets among the documents, by the name of the Secret."""
    return {
        _name(document): [*(document.get("data") or {}), *(document.get("stringData") or {})]
        for document in documents
        if isinstance(document, dict) and document.get("kind") == "Secret"
    }


def _is_mirror(document: Any) -> bool:
    return isinstance(document, dict) and document.get("kind") == KIND


def _name(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


class _MirrorReader:
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
        if self._secrets.has_placeholders:
            properties |= DIRECTORY_PROVIDER
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
        version = resource.required_text("apiVersion")
        resource.text("kind")
        resource.part("metadata")
        resource.part("status")
        spec = resource.part("spec")
        if version and not version.startswith(API_GROUP):
            resource.fault("apiVersion", f"must begin with {API_GROUP}")
        self._faults += misplaced_field_faults(spec)
        if "target" in spec:
            self._read_v1(spec)
        else:
            self._read_v1beta2(spec)
        self._read_replicas(spec)
        self._remarks += unread_remarks(spec)
        self._remarks += unread_remarks(resource)

    def _read_replicas(self, spec: ResourceFields) -> None:
        if (spec.text("replicas") or "1") not in {"0", "1"}:
            self._is_shared = True
            self._remarks.append(StrimziRemark(spec.path_of("replicas"), _REPLICAS_TEXT))

    def _read_v1(self, spec: ResourceFields) -> None:
        target = spec.part("target")
        for name in _WORKER_FIELDS:
            if target.text(name) is not None:
                self._remarks.append(StrimziRemark(target.path_of(name), WORKER_TEXT))
        target_alias = self._read_cluster(target)
        for mirror in self._mirrors(spec):
            if "source" not in mirror:
                mirror.fault("source", "is missing")
                continue
            source_alias = self._read_cluster(mirror.part("source"))
            self._read_flow(mirror, source_alias, target_alias)

    def _read_v1beta2(self, spec: ResourceFields) -> None:
        if "clusters" not in spec:
            spec.fault("clusters", "is missing (target in version v1)")
        aliases = {self._read_cluster(cluster) for cluster in spec.items("clusters")}
        spec.text("connectCluster")
        for mirror in self._mirrors(spec):
            source = mirror.required_text("sourceCluster")
            target = mirror.required_text("targetCluster")
            for name, alias in (("sourceCluster", source), ("targetCluster", target)):
                if alias and alias not in aliases:
                    mirror.fault(name, f"no cluster of spec.clusters has the alias {alias}")
            self._read_flow(mirror, source, target)

    def _mirrors(self, spec: ResourceFields) -> list[ResourceFields]:
        mirrors = spec.items("mirrors")
        if not mirrors:
            spec.fault("mirrors", "is missing or has no item")
        for mirror in mirrors:
            self._faults += misplaced_field_faults(mirror)
        return mirrors

    def _read_cluster(self, cluster: ResourceFields) -> str:
        alias = cluster.required_text("alias")
        properties = cluster_properties(cluster, self._secrets, self._remarks)
        known = self._clusters.setdefault(alias, properties)
        if known != properties:
            cluster.fault("alias", f"{alias} is another cluster elsewhere; import them one by one")
        return alias

    def _read_flow(self, mirror: ResourceFields, source: str, target: str) -> None:
        flow = f"{source}->{target}"
        if flow in self._flows:
            mirror.fault("", f"the flow {flow} is there twice")
        properties = {"enabled": "true"}
        for names in (_OLD_PATTERNS, PATTERNS):
            for name, key in names.items():
                pattern = mirror.text(name)
                if pattern is not None:
                    properties[key] = pattern
        for name in _CONNECTORS:
            if name in mirror:
                self._read_connector(mirror.part(name), properties)
        if "sourceConnector" not in mirror:
            text = "is missing, but a flow of a file always copies: set topics to what it may copy"
            self._remarks.append(StrimziRemark(mirror.path_of("sourceConnector"), text))
        if "checkpointConnector" not in mirror:
            properties["emit.checkpoints.enabled"] = "false"
        if "heartbeatConnector" in mirror:
            properties["emit.heartbeats.enabled"] = "true"
        self._remarks += unread_remarks(mirror)
        self._flows[flow] = properties

    def _read_connector(self, connector: ResourceFields, properties: dict[str, str]) -> None:
        """Add the settings of a connector. A flow has one value for all its connectors."""
        settings = connector.settings("config")
        tasks = connector.text("tasksMax")
        if tasks is not None:
            settings["tasks.max"] = tasks
        for key, value in settings.items():
            written = self._secrets.with_files(value)
            kept = properties.setdefault(key, written)
            if kept != written:
                name = "tasksMax" if key == "tasks.max" else f"config.{key}"
                shown, used = redact_value(key, value), redact_value(key, kept)
                text = f"{shown} is left out: a flow has one {key} for all connectors, {used}"
                self._remarks.append(StrimziRemark(connector.path_of(name), text))
        self._remarks += unread_remarks(connector)
