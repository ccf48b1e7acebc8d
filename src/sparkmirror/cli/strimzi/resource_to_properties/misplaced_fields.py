"""Fields of a KafkaMirrorMaker2 in the wrong place: what is wrong, and where they belong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sparkmirror.cli.strimzi.resource_to_properties.api_versions import (
    API_GROUP,
    suggested_version,
)
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields
from sparkmirror.errors import ConfigFault

TARGET_CONNECTOR: Final = "targetConnector"
_OF_SPEC: Final = frozenset({"mirrors", "clusters", "connectCluster", "target", "replicas"})
_OF_MIRROR: Final = frozenset(
    {
        *("sourceCluster", "targetCluster", "source"),
        *("sourceConnector", "checkpointConnector", "heartbeatConnector"),
        *("topicsPattern", "topicsExcludePattern", "groupsPattern", "groupsExcludePattern"),
    }
)
_OF_CLUSTER: Final = frozenset({"tls", "authentication", "bootstrapServers"})


def fragment_faults(document: Mapping[str, Any]) -> list[ConfigFault]:
    """Return what is wrong with a document that has no `kind`: often a part of a resource."""
    spec = document.get("spec", document)
    fields = set(spec) if isinstance(spec, dict) else set()
    if not fields & (_OF_SPEC | _OF_MIRROR | {TARGET_CONNECTOR}):
        return [_fault("kind", "is missing: this is no resource of Kubernetes")]
    faults = [
        _fault(
            "kind",
            "is missing: this is a part of a KafkaMirrorMaker2. Begin the file with apiVersion: "
            f"{API_GROUP}{suggested_version(spec)}, kind: KafkaMirrorMaker2 and metadata, and put "
            "this below spec:",
        )
    ]
    found = ResourceFields(spec, "spec" if spec is not document else "", faults)
    faults += misplaced_field_faults(found)
    has_mirrors = bool(fields & {"mirrors", "sourceConnector", "targetCluster"})
    if has_mirrors and not fields & {"clusters", "target"}:
        faults.append(
            _fault(
                "clusters",
                "is missing: list each cluster there with alias and bootstrapServers (in version "
                "v1 write spec.target and spec.mirrors[].source instead)",
            )
        )
    return faults


def misplaced_field_faults(fields: ResourceFields) -> list[ConfigFault]:
    """Return a fault for each field of `spec` or of a mirror that belongs elsewhere."""
    faults = []
    is_mirror = "mirrors[" in fields.path
    for name in fields.unread():
        path = fields.path_of(name)
        if name == TARGET_CONNECTOR:
            faults += _target_connector_faults(fields.part(name))
        elif name in _OF_MIRROR and not is_mirror:
            faults.append(
                _fault(
                    path,
                    f"belongs to an item of mirrors: indent it as far as the first field of the "
                    f"item, so that it is spec.mirrors[0].{name}",
                )
            )
        elif name in _OF_CLUSTER:
            faults.append(_fault(path, f"belongs to a cluster: {_cluster_place(name)}"))
    return faults


def _target_connector_faults(connector: ResourceFields) -> list[ConfigFault]:
    text = (
        "no version of Strimzi has this field: the connectors of a mirror are sourceConnector, "
        "checkpointConnector and, before v1, heartbeatConnector"
    )
    faults = [_fault(connector.path, text)]
    for name in connector.unread():
        if name in _OF_CLUSTER:
            place = _cluster_place(name)
            faults.append(_fault(connector.path_of(name), f"belongs to a cluster: {place}"))
    return faults


def _cluster_place(name: str) -> str:
    return (
        f"write it as spec.clusters[].{name} of the cluster that it is for (in version v1 as "
        f"spec.target.{name} or spec.mirrors[].source.{name})"
    )


def _fault(path: str, text: str) -> ConfigFault:
    return ConfigFault(path, f"{path}: {text}")
