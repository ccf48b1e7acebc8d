"""Placeholders of Strimzi's config providers as those of Kafka's own. Pure.

Strimzi's workers have the providers strimzienv, strimzifile, strimzidir and strimzisecrets, and
those that `config.providers` of the target declares. A process without Strimzi has none of them:
`${strimzisecrets:namespace/secret:key}` becomes a file of the mounted Secret, and so does a
variable or a file of the pod that comes from a Secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.cli.strimzi.config_provider_kinds import (
    CONFIG_MAPS,
    DIRECTORY,
    ENVIRONMENT,
    FILE,
    SECRETS,
)
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.cli.strimzi.resource_to_properties.pod_files_and_variables import (
    PodFilesAndVariables,
)
from sparkmirror.config.secrets.variables import ConfigVariable, rewrite_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class StrimziPlaceholders:
    """Translates the values of one resource. Adds to `remarks` what else must be there."""

    secrets: SecretFiles = field(repr=False)
    pod: PodFilesAndVariables
    kinds: Mapping[str, str] = field(repr=False)
    remarks: list[StrimziRemark]

    def translated(self, value: str, field: str) -> str:
        """Return the value with placeholders that a process without Strimzi can fetch."""
        return rewrite_variables(value, lambda variable: self._translated(variable, field))

    def _translated(self, variable: ConfigVariable, field: str) -> ConfigVariable:
        kind = self.kinds.get(variable.provider, "")
        found = None
        if kind in {SECRETS, CONFIG_MAPS}:
            found = self._of_kubernetes(variable, kind, field)
        elif kind == ENVIRONMENT:
            found = self._of_environment(variable, field)
        elif kind in {DIRECTORY, FILE} and variable.path:
            found = self._of_file(variable, kind, field)
        if found is None:
            self._remark(field, f"{variable} stays as text: no such config provider is known here")
        return found or variable

    def _remark(self, field: str, text: str) -> None:
        self.remarks.append(StrimziRemark(field, text))

    def _of_kubernetes(
        self, variable: ConfigVariable, kind: str, field: str
    ) -> ConfigVariable | None:
        name = variable.path.rpartition("/")[2]
        if not name:
            return None
        if kind == CONFIG_MAPS:
            self._remark(field, f"mount the ConfigMap {name} as {self.secrets.directory}/{name}")
        return self.secrets.variable(name, variable.key)

    def _of_environment(self, variable: ConfigVariable, field: str) -> ConfigVariable | None:
        if variable.path:
            return None
        secret = self.pod.variable(variable.key)
        if secret is not None:
            return self.secrets.variable(*secret)
        self.secrets.providers.add(ENVIRONMENT)
        self._remark(field, f"give the process the variable {variable.key} of the pods")
        return ConfigVariable(ENVIRONMENT, "", variable.key)

    def _of_file(self, variable: ConfigVariable, kind: str, field: str) -> ConfigVariable:
        found = self.pod.secret_of(variable.path)
        if found is None:
            self.secrets.providers.add(kind)
            self._remark(field, f"{variable.path} must be there for the process too")
            return ConfigVariable(kind, variable.path, variable.key)
        mounted, rest = found
        if kind == DIRECTORY:
            return self.secrets.variable(mounted.name, mounted.key_of(variable.key))
        self.secrets.providers.add(FILE)
        path = self.secrets.path(mounted.name, mounted.key_of(rest))
        return ConfigVariable(FILE, path, variable.key)

    def path(self, location: str, field: str) -> str:
        """Return where the process finds a file of the pods."""
        found = self.pod.secret_of(location)
        if found is not None:
            mounted, rest = found
            return self.secrets.path(mounted.name, mounted.key_of(rest))
        self._remark(field, f"{location} must be there for the process too")
        return location
