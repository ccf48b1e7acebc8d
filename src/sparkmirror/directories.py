"""The directories of this user: the cache, and the state that must outlive a process.

    cache    $SPARKMIRROR_CACHE, else $XDG_CACHE_HOME/sparkmirror, else ~/.cache/sparkmirror
    state    $XDG_STATE_HOME/sparkmirror, else ~/.local/state/sparkmirror

These functions create nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_NAME = "sparkmirror"


def cache_directory(environ: Mapping[str, str]) -> Path:
    """For files that can be created again: jars, class archives."""
    if environ.get("SPARKMIRROR_CACHE"):
        return Path(environ["SPARKMIRROR_CACHE"]).expanduser().absolute()
    if environ.get("XDG_CACHE_HOME"):
        return Path(environ["XDG_CACHE_HOME"]) / _NAME
    return Path.home() / ".cache" / _NAME


def state_directory(environ: Mapping[str, str]) -> Path:
    """For files that outlive a run: receipts, logs, labs."""
    if environ.get("XDG_STATE_HOME"):
        return Path(environ["XDG_STATE_HOME"]) / _NAME
    return Path.home() / ".local" / "state" / _NAME
