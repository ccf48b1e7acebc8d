"""When to ask a connector for its task configs. Pure.

    idle ── request ──▶ in progress ── request ──▶ in progress, requested again
      ▲                     │                                │
      └──── on_answer ──────┘◀────────── on_answer ──────────┘

After `on_failure`, `retry` or an earlier `request` asks again. Belongs to the herder thread.
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
class TaskReconfigurationSchedule:
    """The state of one connector's task reconfiguration."""

    applied_properties: ConfigProperties | None = None
    """The connector's properties when its current tasks were planned."""
    _is_in_progress: bool = False
    _awaits_retry: bool = False
    _is_requested_again: bool = False
    _backoff: Backoff = field(default_factory=_connect_backoff)

    def request(self) -> bool:
        """Return whether to ask the connector now. If it is being asked, note one more request.

        After a failure a request does not wait for the retry.
        """
        if self._is_in_progress and not self._awaits_retry:
            self._is_requested_again = True
            return False
        self._is_in_progress, self._awaits_retry = True, False
        return True

    def on_answer(self) -> bool:
        """Return whether to ask again, because of a request that came meanwhile."""
        self._is_in_progress = False
        is_requested, self._is_requested_again = self._is_requested_again, False
        return is_requested and self.request()

    def retry(self) -> bool:
        """Return whether to ask again: not if a request has replaced the one that failed."""
        return self._awaits_retry and self.request()

    def on_failure(self) -> None:
        """Wait for `retry`, or for an earlier request."""
        self._awaits_retry = True

    def on_new_instance(self) -> None:
        """Forget all requests: they were for an earlier instance of the connector."""
        self._is_in_progress = self._is_requested_again = self._awaits_retry = False

    def on_success(self) -> None:
        """Start with the first pause at the next retry."""
        self._backoff.reset()

    def next_retry_delay_s(self) -> float:
        """Return the pause before the next try; it doubles up to a limit."""
        return self._backoff.next_delay_s()
