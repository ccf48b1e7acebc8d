"""The settings of a cluster, and which of them have no field yet. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from sparkmirror.cli.strimzi.remarks import StrimziRemark


class WrittenSetting(NamedTuple):
    """A value of the file, and the key that it has there."""

    value: str
    origin: str


class ClusterSettings:
    """The settings of a cluster that no field has yet. What stays is remarked."""

    def __init__(
        self,
        alias: str,
        settings: Mapping[str, WrittenSetting],
        expand: Callable[[str], str],
        remarks: list[StrimziRemark],
    ) -> None:
        self.alias = alias
        self._left = dict(settings)
        self._expand = expand
        self._remarks = remarks

    def take(self, name: str) -> WrittenSetting | None:
        """Return a setting that gets a field; None if there is none."""
        return self._left.pop(name, None)

    def take_all(self, *prefixes: str) -> dict[str, WrittenSetting]:
        """Return all settings whose names begin like this."""
        names = [name for name in self._left if name.startswith(prefixes)]
        return {name: self._left.pop(name) for name in names}

    def take_word(self, name: str, default: str, words: Collection[str]) -> str:
        """Return a word in upper case, with its placeholders replaced; remark any other one."""
        found = self.take(name)
        if found is None:
            return default
        word = self._expand(found.value).strip().upper()
        if word in words:
            return word
        self.remark(found, f"is none of {', '.join(sorted(words))}: {default} is assumed")
        return default

    def remark(self, setting: WrittenSetting, text: str) -> None:
        self._remarks.append(StrimziRemark(setting.origin, text))
