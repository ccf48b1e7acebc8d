"""The resources of a YAML stream: which are read, and the properties that result. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.cli.strimzi.resource_to_properties.mirror_maker_2_import import (
    KIND,
    MirrorMaker2Import,
)
from sparkmirror.cli.strimzi.resource_to_properties.misplaced_fields import fragment_faults
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields
from sparkmirror.errors import ConfigError, ConfigFault


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
    reader = MirrorMaker2Import(secrets, faults, remarks)
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
