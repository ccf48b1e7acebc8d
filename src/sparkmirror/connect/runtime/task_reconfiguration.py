"""When to ask a connector for its task configs, and why the last answer failed. Pure.

    idle ── request ──▶ in progress ── request ──▶ in progress, requested again
      ▲                     │                                │
      └──── on_answer ──────┘◀────────── on_answer ──────────┘

Belongs to the herder thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sparkmirror.backoff import Backoff
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties

INITIAL_RETRY_DELAY_S: Final = 0.25
MAX_RETRY_DELAY_S: Final = 60.0


def _connect_backoff() -> Backoff:
    return Backoff(initial_s=INITIAL_RETRY_DELAY_S, max_s=MAX_RETRY_DELAY_S, jitter=0.0)


@dataclass(slots=True)
class TaskReconfiguration:
    """The state of one connector's task reconfiguration."""

    applied_properties: ConfigProperties | None = None
    """The connector's properties when its current tasks were planned."""
    last_error: str = ""
    """The trace of the last failure; empty after a success."""
    _is_in_progress: bool = False
    _is_requested_again: bool = False
    _backoff: Backoff = field(default_factory=_connect_backoff)

    def request(self) -> bool:
        """Return whether to ask the connector now. If it is being asked, note one more request."""
        if self._is_in_progress:
            self._is_requested_again = True
            return False
        self._is_in_progress = True
        return True

    def on_answer(self) -> bool:
        """Return whether to ask again, because of a request that came meanwhile."""
        self._is_in_progress = False
        is_requested, self._is_requested_again = self._is_requested_again, False
        return is_requested and self.request()

    def retry(self) -> bool:
        """Ask again in place of the request that failed."""
        self._is_in_progress = False
        return self.request()

    def on_new_instance(self) -> None:
        """Forget all requests: they were for an earlier instance of the connector."""
        self._is_in_progress = self._is_requested_again = False

    def on_success(self) -> None:
        """Forget the last error; the next retry starts with the first pause."""
        self.last_error = ""
        self._backoff.reset()

    def next_retry_delay_s(self) -> float:
        """Return the pause before the next try; it doubles up to a limit."""
        return self._backoff.next_delay_s()
