"""The versions of KafkaMirrorMaker2, and the fields that only the older ones have. Pure.

Strimzi has `v1` since 0.49. `v1beta2` ended with 0.51, `v1alpha1` long before. A field that `v1`
lacks is a fault if it names clusters: Strimzi would ignore it. What else an old version has is read
and listed.
"""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields

API_GROUP: Final = "kafka.strimzi.io/"
V1: Final = "v1"
V1BETA2: Final = "v1beta2"
_VERSIONS: Final = (V1, V1BETA2, "v1alpha1")
_OLD_LAYOUT_OF_SPEC: Final = {
    "clusters": "write spec.target and spec.mirrors[].source",
    "connectCluster": "leave it out: the workers belong to spec.target",
}
_OLD_LAYOUT_OF_MIRROR: Final = {
    "sourceCluster": "write spec.mirrors[].source with alias and bootstrapServers",
    "targetCluster": "leave it out: the target is spec.target",
}
_OTHER_OLD_FIELDS: Final = (
    "heartbeatConnector",
    "topicsBlacklistPattern",
    "groupsBlacklistPattern",
)
_CONNECTORS: Final = ("sourceConnector", "checkpointConnector", "heartbeatConnector")


def suggested_version(spec: Any) -> str:
    """Return the version whose fields a `spec` has, or the items of its `mirrors`."""
    places = [spec, *_mirrors_of(spec)]
    old = {*_OLD_LAYOUT_OF_SPEC, *_OLD_LAYOUT_OF_MIRROR, *_OTHER_OLD_FIELDS}
    is_old = any(isinstance(place, dict) and old & place.keys() for place in places)
    return V1BETA2 if is_old else V1


def check_version(resource: ResourceFields) -> list[StrimziRemark]:
    """Record faults of `apiVersion`, and of fields that it lacks; return remarks on others."""
    written = resource.required_text("apiVersion")
    version = written.removeprefix(API_GROUP)
    if written and not written.startswith(API_GROUP):
        resource.fault("apiVersion", f"must begin with {API_GROUP}")
    elif written and version not in _VERSIONS:
        known = ", ".join(f"{API_GROUP}{one}" for one in _VERSIONS)
        resource.fault("apiVersion", f"{written} is not known; write one of {known}")
    spec = resource.raw("spec")
    if version != V1 or not isinstance(spec, dict):
        return []
    for name, text in _OLD_LAYOUT_OF_SPEC.items():
        if name in spec and "target" not in spec:
            resource.fault(f"spec.{name}", _fault_text(text))
    remarks: list[StrimziRemark] = []
    for at, mirror in enumerate(_mirrors_of(spec)):
        path = f"spec.mirrors[{at}]"
        if not isinstance(mirror, dict):
            continue
        for name, text in _OLD_LAYOUT_OF_MIRROR.items():
            if name in mirror:
                resource.fault(f"{path}.{name}", _fault_text(text))
        remarks += [_remark(f"{path}.{name}") for name in _OTHER_OLD_FIELDS if name in mirror]
        remarks += [
            _remark(f"{path}.{name}.pause")
            for name in _CONNECTORS
            if isinstance(mirror.get(name), dict) and "pause" in mirror[name]
        ]
    return remarks


def _mirrors_of(spec: Any) -> list[Any]:
    mirrors = spec.get("mirrors") if isinstance(spec, dict) else None
    return mirrors if isinstance(mirrors, list) else []


def _fault_text(text: str) -> str:
    return f"version v1 has no such field: write apiVersion: {API_GROUP}{V1BETA2}, or {text}"


def _remark(path: str) -> StrimziRemark:
    text = f"version v1 has no such field and Strimzi ignores it; it is read as in {V1BETA2}"
    return StrimziRemark(path, text)
