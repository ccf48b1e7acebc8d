"""Hatchling's hook for the wheel: with compiled modules where they can be compiled.

Such a wheel has the tag of its Python and its platform. Without a C compiler, and if
SPARKMIRROR_COMPILED is `no`, the wheel is pure Python and has the tag `py3-none-any`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledModulesHook(BuildHookInterface[Any]):
    """Compiles the modules in the tree and adds them to the wheel."""

    def dependencies(self) -> list[str]:
        """Return what pip installs for the build: nothing if modules cannot be compiled."""
        self._find_sources()
        from sparkmirror_build.compile_modules import BUILD_REQUIREMENTS, missing_for_compilation

        return [] if missing_for_compilation() else list(BUILD_REQUIREMENTS.values())

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled modules. An editable installation uses those in the tree, if any."""
        if version == "editable":
            return
        self._find_sources()
        from sparkmirror.compiled_modules import DIRECTORY
        from sparkmirror_build.compile_modules import compile_if_possible

        if reason := compile_if_possible():
            self.app.display_warning(f"The wheel is pure Python: {reason}.")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][str(DIRECTORY)] = "sparkmirror/compiled"

    def _find_sources(self) -> None:
        sources = str(Path(self.root) / "src")
        if sources not in sys.path:
            sys.path.insert(0, sources)
