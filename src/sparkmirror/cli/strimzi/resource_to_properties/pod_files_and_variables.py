"""Which Secrets the pods of a KafkaMirrorMaker2 have as files and as variables. Pure.

Strimzi takes them from `template.pod.volumes` and `template.connectContainer`, and before version
v1 from `externalConfiguration`, whose volumes are below /opt/kafka/external-configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.left_out_fields import POD, unread_remarks
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields

_EXTERNAL_DIRECTORY: Final = "/opt/kafka/external-configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedSecret:
    """A Secret or ConfigMap that the pods have as a directory."""

    name: str
    field: str
    """Where the resource says so."""
    renamed: tuple[tuple[str, str], ...] = ()
    """File names with the keys that they hold, if these differ."""

    def key_of(self, file: str) -> str:
        """Return the key that a file holds."""
        return dict(self.renamed).get(file, file)


@dataclass(slots=True, kw_only=True)
class PodFilesAndVariables:
    """Directories and variables of the pods. `used` has the fields that a placeholder needed."""

    mounts: dict[str, MountedSecret] = field(default_factory=dict, repr=False)
    """Mounted Secrets by their directory."""
    variables: dict[str, SecretKey | None] = field(default_factory=dict, repr=False)
    """Variables; None for a value that is not from a Secret."""
    fields_of_variables: dict[str, str] = field(default_factory=dict, repr=False)
    used: set[str] = field(default_factory=set)

    def variable(self, name: str) -> SecretKey | None:
        """Return the key of a Secret that a variable has; None if it has another value."""
        self.used.add(self.fields_of_variables.get(name, ""))
        return self.variables.get(name)

    def secret_of(self, path: str) -> tuple[MountedSecret, str] | None:
        """Return the Secret that has a path, and the rest of the path; None if none has it."""
        for directory, mounted in self.mounts.items():
            if path == directory or path.startswith(f"{directory}/"):
                self.used.add(mounted.field)
                return mounted, path.removeprefix(directory).strip("/")
        return None

    def unused_remarks(self) -> list[StrimziRemark]:
        """Return a remark for each volume and variable that no placeholder needed."""
        fields = [one.field for one in self.mounts.values()]
        fields += self.fields_of_variables.values()
        return [StrimziRemark(one, POD) for one in fields if one not in self.used]


def read_pod(spec: ResourceFields, remarks: list[StrimziRemark]) -> PodFilesAndVariables:
    """Read template and externalConfiguration. Adds to `remarks` what else they have."""
    pod = PodFilesAndVariables()
    external = spec.part("externalConfiguration")
    _read_variables(external, pod)
    for volume in external.items("volumes"):
        name = volume.required_text("name")
        _add_mount(pod, volume, f"{_EXTERNAL_DIRECTORY}/{name}")
    template = spec.part("template")
    container, pod_template = template.part("connectContainer"), template.part("pod")
    _read_variables(container, pod)
    directories = {
        mount.required_text("name"): mount.required_text("mountPath")
        for mount in container.items("volumeMounts")
    }
    for volume in pod_template.items("volumes"):
        name = volume.required_text("name")
        _add_mount(pod, volume, directories.get(name, ""))
    for part in (external, template, container, pod_template):
        remarks += unread_remarks(part, POD)
    return pod


def _read_variables(container: ResourceFields, pod: PodFilesAndVariables) -> None:
    for variable in container.items("env"):
        name = variable.required_text("name")
        source = variable.part("valueFrom")
        key = None
        for kind in ("secretKeyRef", "configMapKeyRef"):
            if kind in source:
                named = source.part(kind)
                key = SecretKey(named.required_text("name"), named.required_text("key"))
        pod.variables[name] = key
        pod.fields_of_variables[name] = variable.path


def _add_mount(pod: PodFilesAndVariables, volume: ResourceFields, directory: str) -> None:
    secret, config_map = volume.part("secret"), volume.part("configMap")
    name = secret.text("secretName") or config_map.text("name")
    if not name or not directory:
        return
    items = [*secret.items("items"), *config_map.items("items")]
    renamed = tuple((item.required_text("path"), item.required_text("key")) for item in items)
    pod.mounts[directory.rstrip("/")] = MountedSecret(name=name, field=volume.path, renamed=renamed)
