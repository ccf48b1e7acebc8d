"""The three connectors' tables, taken together."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.source import SOURCE

ALL_CONNECTOR_NAMES: Final[frozenset[str]] = frozenset(
    {*SOURCE.names, *CHECKPOINT.names, *HEARTBEAT.names}
)
"""What a dedicated file may say for all flows at once: the names that any connector declares."""
