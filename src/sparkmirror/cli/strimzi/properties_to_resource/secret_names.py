"""The Secrets that an exported resource names: those that exist, and those to be created. Pure.

A file below the directory of Secrets, as `sparkmirror import strimzi` writes it, is a key of a
Secret that exists. Every other password, store or placeholder becomes a key of a Secret that the
operator has to create; a remark says so. No value of a secret is kept here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from sparkmirror.cli.strimzi.config_provider_kinds import DIRECTORY, ENVIRONMENT, FILE, SECRETS
from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.properties_to_resource.kubernetes_names import (
    UniqueNames,
    is_secret_key,
    is_secret_name,
    resource_name,
    secret_key_name,
)
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.config.secrets.variables import ConfigVariable, find_variables


class SecretNames:
    """Names Secrets. `kinds` says what the names of config providers mean."""

    def __init__(
        self,
        directory: str,
        kinds: Mapping[str, str],
        values: Iterable[str],
        remarks: list[StrimziRemark],
    ) -> None:
        self.kinds = kinds
        self._directory = PurePosixPath(directory)
        self._remarks = remarks
        self._names = UniqueNames(self._existing_names(values))
        self._keys: dict[str, UniqueNames] = {}

    def created(self, owner: str, part: str, key: str, content: str, origin: str) -> SecretKey:
        """Return a key of the Secret `<owner>-<part>`, and remark what it must hold."""
        name = self._names.name_of((owner, part), resource_name(f"{owner}-{part}"))
        return self._created_key(name, key, content, origin)

    def key_of(self, variable: ConfigVariable, origin: str) -> SecretKey | None:
        """Return the key of a Secret that a placeholder means; None if it means none."""
        kind = self.kinds.get(variable.provider)
        if kind == SECRETS and variable.path:
            return SecretKey(variable.path.rpartition("/")[2], variable.key)
        if kind not in {DIRECTORY, FILE} or not variable.path:
            return None
        path = PurePosixPath(variable.path)
        if kind == DIRECTORY and (existing := self.key_of_file(str(path / variable.key))):
            return existing
        wanted = path.name if kind == DIRECTORY else path.stem
        name = self._names.name_of(path, resource_name(wanted))
        content = f"the file {path / variable.key}"
        if kind == FILE:
            content = f"{variable.key} of {path}"
        return self._created_key(name, variable.key, content, origin)

    def key_of_file(self, location: str) -> SecretKey | None:
        """Return the key of an existing Secret whose file this is."""
        path = PurePosixPath(location)
        if path.parent.parent != self._directory:
            return None
        name, key = path.parent.name, path.name
        return SecretKey(name, key) if is_secret_name(name) and is_secret_key(key) else None

    def is_variable_of_pod(self, variable: ConfigVariable) -> bool:
        """Whether a placeholder means a variable of the environment."""
        return self.kinds.get(variable.provider) == ENVIRONMENT and not variable.path

    def _created_key(self, secret: str, key: str, content: str, origin: str) -> SecretKey:
        names = self._keys.setdefault(secret, UniqueNames())
        made = SecretKey(secret, names.name_of(key, secret_key_name(key)))
        text = f"create the Secret {made.secret} with {content} as {made.key}"
        self._remarks.append(StrimziRemark(origin, text))
        return made

    def _existing_names(self, values: Iterable[str]) -> set[str]:
        """Return the names of Secrets that values mention, so that no other one is called so."""
        names = set()
        for value in values:
            files = [value] if value.startswith("/") else []
            for variable in find_variables(value) if "${" in value else ():
                files.append(f"{variable.path}/{variable.key}")
            names |= {found.secret for file in files if (found := self.key_of_file(file))}
        return names
