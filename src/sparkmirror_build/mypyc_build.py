"""Runs mypyc and the C compiler: `python -m sparkmirror_build.mypyc_build DIRECTORY`.

Expects the directory of the sources as the working directory. mypyc ends the process if a module
cannot be compiled, so `compile_modules` starts this module as a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext

from sparkmirror.compiled_modules import COMPILED_MODULES, LIBRARY_NAME

_MYPY_OPTIONS = ("--config-file=", "--ignore-missing-imports", "--follow-imports=silent")
"""The same wherever it runs: dependencies are missing where pip builds a wheel."""


def build_libraries(directory: Path) -> None:
    """Compile the modules into a directory."""
    sources = [f"{name.replace('.', '/')}.py" for name in COMPILED_MODULES]
    with tempfile.TemporaryDirectory() as scratch:
        extensions = mypycify(
            [*_MYPY_OPTIONS, f"--cache-dir={scratch}/cache", *sources],
            only_compile_paths=sources,
            target_dir=f"{scratch}/c",
            group_name=LIBRARY_NAME.removesuffix("__mypyc"),
        )
        for extension in extensions:
            extension.extra_compile_args.append("-fno-semantic-interposition")
        distribution = Distribution({"name": "sparkmirror", "ext_modules": extensions})
        command = build_ext(distribution)
        command.build_lib, command.build_temp = str(directory), f"{scratch}/objects"
        command.ensure_finalized()
        command.run()


if __name__ == "__main__":
    build_libraries(Path(sys.argv[1]))
