"""How a worker is a member of its group: timeouts, and how long lost work is held. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.event_hubs_defaults import SESSION_TIMEOUT, event_hubs_worker_defaults

HEARTBEAT_INTERVAL = "heartbeat.interval.ms"
REBALANCE_TIMEOUT = "rebalance.timeout.ms"
MAX_DELAY = "scheduled.rebalance.max.delay.ms"
DEFAULT_HEARTBEAT_INTERVAL_MS = 500
"""Shorter than Connect's: a worker learns of a rebalance with its next heartbeat."""
DEFAULT_MAX_DELAY_MS = 0
"""Connect holds the work of a lost worker for five minutes. Here others run it at once: a driver
starts in seconds, and leases and fences keep the lost worker from copying twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroupSettings:
    """The group of a worker."""

    group_id: str
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = DEFAULT_HEARTBEAT_INTERVAL_MS
    max_delay_ms: int = DEFAULT_MAX_DELAY_MS
    is_exclusive: bool = False
    """Whether the group has one worker: the next one waits until the first has left."""

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, ParsedValue],
        file_values: Mapping[str, str],
        *,
        is_exclusive: bool = False,
    ) -> Self:
        """Read the parsed config of a worker.

        `file_values` are the values of its file: two keys have another default than in Connect,
        and Event Hubs has values of its own.
        """
        event_hubs = event_hubs_worker_defaults(file_values)
        return cls(
            group_id=str(config["group.id"]),
            session_timeout_ms=(
                int(event_hubs[SESSION_TIMEOUT])
                if SESSION_TIMEOUT in event_hubs
                else _milliseconds(config, SESSION_TIMEOUT)
            ),
            rebalance_timeout_ms=_milliseconds(config, REBALANCE_TIMEOUT),
            heartbeat_interval_ms=(
                _milliseconds(config, HEARTBEAT_INTERVAL)
                if HEARTBEAT_INTERVAL in file_values
                else DEFAULT_HEARTBEAT_INTERVAL_MS
            ),
            max_delay_ms=(
                _milliseconds(config, MAX_DELAY)
                if MAX_DELAY in file_values
                else DEFAULT_MAX_DELAY_MS
            ),
            is_exclusive=is_exclusive,
        )


def _milliseconds(config: Mapping[str, ParsedValue], name: str) -> int:
    value = config[name]
    assert isinstance(value, int)
    return value
