"""Which form of the hot modules runs: compiled by mypyc, or the same modules in pure Python.

`sparkmirror_build` compiles the modules of `COMPILED_MODULES` into the directory `compiled` beside
this file, with a manifest: the digests of the sources that the compiler has read. The finder gives
the compiled form of a module only if the directory is for this Python and every source still has
its digest. So an edited source never runs as an old binary. In every other case, and if
SPARKMIRROR_COMPILED is `no`, Python imports the sources. All of these modules have the same form.

The package `sparkmirror` installs the finder when it is imported, before any of these modules.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

COMPILED_MODULES = (
    "sparkmirror.copy.event_loop",
    "sparkmirror.copy.record_ages",
    "sparkmirror.copy.task.batch_converter",
    "sparkmirror.copy.task.changed_partitions",
    "sparkmirror.copy.task.cluster_connections",
    "sparkmirror.copy.task.fetch_plan",
    "sparkmirror.copy.task.fetch_wait",
    "sparkmirror.copy.task.fetcher",
    "sparkmirror.copy.task.leased_partition",
    "sparkmirror.copy.task.produce.partition_queue",
    "sparkmirror.copy.task.produce.pending_batch",
    "sparkmirror.copy.task.produce.routing_queue",
    "sparkmirror.copy.task.produce.sender",
    "sparkmirror.copy.task.receipts.receipt_collector",
    "sparkmirror.copy.task.reports",
    "sparkmirror.copy.task.routing_partition",
    "sparkmirror.copy.task.throttle",
    "sparkmirror.copy.task.transform.query_converter",
    "sparkmirror.copy.task.transform.transforming_converter",
    "sparkmirror.wire.batch.aborted_transactions",
    "sparkmirror.wire.batch.checksum",
    "sparkmirror.wire.batch.header",
    "sparkmirror.wire.batch.lanes.forward",
    "sparkmirror.wire.batch.lanes.forward_or_reopen",
    "sparkmirror.wire.batch.lanes.merge",
    "sparkmirror.wire.batch.lanes.reopen",
    "sparkmirror.wire.batch.record_headers",
    "sparkmirror.wire.batch.records",
    "sparkmirror.wire.batch.rewrite",
    "sparkmirror.wire.batch.sequence",
    "sparkmirror.wire.batch.varint",
    "sparkmirror.wire.net.buffer_pool",
    "sparkmirror.wire.net.channel",
    "sparkmirror.wire.net.connection",
    "sparkmirror.wire.net.transport",
    "sparkmirror.wire.protocol.fetch",
    "sparkmirror.wire.protocol.fetch_session",
    "sparkmirror.wire.protocol.primitive_types",
    "sparkmirror.wire.protocol.produce",
    "sparkmirror.wire.protocol.topics.current_leader",
    "sparkmirror.wire.protocol.topics.topic_key",
)
"""Modules that are measurably faster if they are compiled; docs/decisions/0023 has the figures."""
SWITCH = "SPARKMIRROR_COMPILED"
SOURCE_ROOT = Path(__file__).parent.parent
DIRECTORY = Path(__file__).parent / "compiled"
MANIFEST_NAME = "manifest.json"
LIBRARY_NAME = "sparkmirror__mypyc"
"""The library with the code of all compiled modules. mypyc imports it by this name."""


class ModuleForm(NamedTuple):
    """The form in which the modules run; if it is pure Python, the reason."""

    is_compiled: bool
    reason: str = ""

    def __str__(self) -> str:
        """Return what `sparkmirror --version` shows."""
        return "compiled" if self.is_compiled else f"pure Python: {self.reason}"


def is_switched_off(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user wants pure Python."""
    return environment.get(SWITCH, "").strip().lower() in ("no", "false", "0", "off")


def library_suffix() -> str:
    """Return how the names of compiled modules end: the Python and the platform they are for."""
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


def file_of(directory: Path, name: str) -> Path:
    """Return the file of a compiled module, or of the library."""
    return directory.joinpath(*name.split(".")).with_suffix(library_suffix())


def digest_of(source: Path) -> str:
    """Return the digest of a source file. Raises OSError."""
    import hashlib

    return hashlib.sha256(source.read_bytes()).hexdigest()


def reason_for_pure(directory: Path = DIRECTORY, source_root: Path = SOURCE_ROOT) -> str:
    """Return why the compiled modules of a directory must not be used; empty if they may be."""
    import json

    try:
        manifest = json.loads((directory / MANIFEST_NAME).read_text("utf-8"))
        suffix, modules = manifest["suffix"], manifest["modules"]
        sources, sizes = manifest["sources"].items(), manifest["sizes"]
    except OSError:
        return "the modules are not compiled"
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"{MANIFEST_NAME} of the compiled modules is damaged"
    if suffix != library_suffix():
        return f"the modules are compiled for another Python ({suffix})"
    if modules != list(COMPILED_MODULES):
        return "other modules are compiled"
    if sizes != library_sizes(directory):
        return "files of the compiled modules are missing or damaged"
    try:
        for source, digest in sources:
            if digest_of(source_root / source) != digest:
                return f"{source} has changed since the modules were compiled"
    except OSError as error:
        return f"a source of the compiled modules cannot be read: {error}"
    return ""


def library_sizes(directory: Path) -> dict[str, int]:
    """Return the sizes of the compiled files of all modules, by name; -1 for a missing one."""
    sizes = {}
    for name in (LIBRARY_NAME, *COMPILED_MODULES):
        try:
            sizes[name] = file_of(directory, name).stat().st_size
        except OSError:
            sizes[name] = -1
    return sizes


_lock = threading.Lock()
_forms: list[ModuleForm] = []


def module_form() -> ModuleForm:
    """Return the form in which the modules run. The first call decides for this process."""
    with _lock:
        if not _forms:
            _forms.append(_decide())
        return _forms[0]


def _decide() -> ModuleForm:
    if is_switched_off():
        return ModuleForm(False, f"{SWITCH} is {os.environ[SWITCH].strip()}")
    if reason := reason_for_pure():
        return ModuleForm(False, reason)
    try:
        _load_library(file_of(DIRECTORY, LIBRARY_NAME))
    except (ImportError, OSError) as error:
        return ModuleForm(False, f"the compiled modules cannot be loaded: {error}")
    return ModuleForm(True)


def _load_library(file: Path) -> None:
    spec = importlib.util.spec_from_file_location(LIBRARY_NAME, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no library for this Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[LIBRARY_NAME] = module


class CompiledModuleFinder(MetaPathFinder):
    """Finds the compiled form of the modules that have one, if it may be used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the compiled module, or None: Python goes on with the source."""
        if fullname not in COMPILED_MODULES or not module_form().is_compiled:
            return None
        return importlib.util.spec_from_file_location(fullname, file_of(DIRECTORY, fullname))


def install_finder() -> None:
    """Let Python ask for compiled modules before it looks for sources."""
    sys.meta_path.insert(0, CompiledModuleFinder())
