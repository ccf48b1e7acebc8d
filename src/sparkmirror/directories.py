"""Where things of this user's are kept: what can be made again, and what must outlive us.

    cache    $SPARKMIRROR_CACHE, else $XDG_CACHE_HOME/sparkmirror, else ~/.cache/sparkmirror
    state    $XDG_STATE_HOME/sparkmirror, else ~/.local/state/sparkmirror

Says where; makes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_NAME = "sparkmirror"


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Where to keep what can be made again: jars, class archives."""
    if environ.get("SPARKMIRROR_CACHE"):
        return Path(environ["SPARKMIRROR_CACHE"]).expanduser().absolute()
    if environ.get("XDG_CACHE_HOME"):
        return Path(environ["XDG_CACHE_HOME"]) / _NAME
    return Path.home() / ".cache" / _NAME


def state_directory(environ: Mapping[str, str]) -> Path:
    """Where to keep what outlives a run: receipts, logs, labs."""
    if environ.get("XDG_STATE_HOME"):
        return Path(environ["XDG_STATE_HOME"]) / _NAME
    return Path.home() / ".local" / "state" / _NAME
