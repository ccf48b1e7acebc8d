"""Values of a file with placeholders that the workers of Strimzi can fetch. Pure.

Strimzi's workers have the provider strimzienv, and `template.connectContainer.env` gives their
container variables that come from Secrets. So each secret of a value becomes such a variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.properties_to_resource.kubernetes_names import (
    UniqueNames,
    variable_name,
)
from sparkmirror.cli.strimzi.properties_to_resource.secret_names import SecretNames
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.config.secrets.variables import (
    ConfigVariable,
    find_variables,
    has_only_variables,
    rewrite_variables,
)

_PROVIDER: Final = "strimzienv"


class PodVariables:
    """The variables of the pods of one resource. Adds to `remarks` what else they need."""

    def __init__(
        self, secrets: SecretNames, values: Iterable[str], remarks: list[StrimziRemark]
    ) -> None:
        self.secrets = secrets
        self._remarks = remarks
        written = (find_variables(value) for value in values if "${" in value)
        self._names = UniqueNames(
            (one.key for found in written for one in found if secrets.is_variable_of_pod(one)),
            separator="_",
        )
        self._secret_keys: dict[str, SecretKey] = {}

    def template(self) -> dict[str, Any]:
        """Return the template of the pods; nothing if they need no variable."""
        if not self._secret_keys:
            return {}
        env = [
            {"name": name, "valueFrom": {"secretKeyRef": {"name": one.secret, "key": one.key}}}
            for name, one in self._secret_keys.items()
        ]
        return {"connectContainer": {"env": env}}

    def text(self, key: str, value: str, owner: str, part: str, origin: str) -> str:
        """Return what the resource has as the value of a key.

        A secret becomes a variable from the Secret `<owner>-<part>`.
        """
        if not has_only_variables(value) and redact_value(key, value) != value:
            return self.secret_text(owner, part, key, "the value of this key", origin)
        return self.translated(value, origin)

    def secret_text(self, owner: str, part: str, key: str, content: str, origin: str) -> str:
        """Return the placeholder of a secret that is to be created."""
        return str(self._variable(self.secrets.created(owner, part, key, content, origin)))

    def translated(self, value: str, origin: str) -> str:
        """Return the value with placeholders that Strimzi's workers can fetch."""
        return rewrite_variables(value, lambda variable: self._translated(variable, origin))

    def _translated(self, variable: ConfigVariable, origin: str) -> ConfigVariable:
        if self.secrets.is_variable_of_pod(variable):
            text = f"set the variable {variable.key} in spec.template.connectContainer.env"
            self._remarks.append(StrimziRemark(origin, text))
            return ConfigVariable(_PROVIDER, "", variable.key)
        key = self.secrets.key_of(variable, origin)
        if key is not None:
            return self._variable(key)
        text = f"{variable} stays as text: no config provider of Strimzi has this name"
        self._remarks.append(StrimziRemark(origin, text))
        return variable

    def _variable(self, key: SecretKey) -> ConfigVariable:
        name = self._names.name_of(key, variable_name(f"{key.secret}_{key.key}"))
        self._secret_keys[name] = key
        return ConfigVariable(_PROVIDER, "", name)
