"""Attributes the faults of a flow's config to the line of the dedicated file behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.provenance import ResolvedSetting
from sparkmirror.config.review.findings import FindingsCollector
from sparkmirror.errors import ConfigFault

FILE_LOCATION = "the file"


class FlowFaultLines:
    """Adds faults to the findings of one file, each with the key and line that the file has.

    `unresolved_keys` are keys of the file whose placeholders could not be fetched. Their values are
    unknown, so a fault that depends on one of them is not added.
    """

    def __init__(
        self,
        config: MirrorMakerConfig,
        findings: FindingsCollector,
        unresolved_keys: frozenset[str],
    ) -> None:
        self._config = config
        self._findings = findings
        self._unresolved_keys = unresolved_keys

    def line(self, key: str) -> int | None:
        """The line of a key of the file."""
        candidate = self._config.file_values.get(key)
        return None if candidate is None else candidate.origin.line

    def add_top_level(self, fault: ConfigFault, *, is_start: bool = False) -> None:
        """Add a fault of a key that the process itself reads."""
        if fault.key in self._unresolved_keys:
            return
        if not (is_start and self._findings.has_other_error(fault.key, fault.message)):
            self._findings.add_error(FILE_LOCATION, fault.key, self.line(fault.key), fault.message)

    def add(
        self,
        location: str,
        layers: Mapping[str, ResolvedSetting],
        fault: ConfigFault,
        missing_key: str,
        *,
        depends_on: Iterable[str] = (),
        is_start: bool = False,
    ) -> None:
        """Add a fault of a key of a compiled config.

        A key that the file does not set is reported as `missing_key`, which is what to write.
        `depends_on` are other keys of the config that may have caused the fault. If `is_start`, the
        fault is not added to a key that has another fault already: the tables explain it better.
        """
        setting = layers.get(fault.key) or self._config.file_values.get(fault.key)
        if any(self._is_unresolved(layers.get(key)) for key in depends_on):
            return
        if setting is None:
            key, line = missing_key, None
        elif setting.origin.key in self._unresolved_keys:
            return
        else:
            key, line = setting.origin.key or missing_key, setting.origin.line
        if not (is_start and self._findings.has_other_error(key, fault.message)):
            self._findings.add_error(location, key, line, fault.message)

    def _is_unresolved(self, setting: ResolvedSetting | None) -> bool:
        return setting is not None and setting.origin.key in self._unresolved_keys
