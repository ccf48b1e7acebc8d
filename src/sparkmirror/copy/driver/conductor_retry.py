"""Why a conductor cannot work now, and when it tries again. The log tells it once. No clock."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from sparkmirror.backoff import Backoff
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.partition_problems_by_cause import same_causes
from sparkmirror.copy.settings import with_side
from sparkmirror.errors import ClusterError, MirrorError

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.1
LAST_RETRY_S = 2.0
"""A conductor notices that a cluster works again after this time at the latest."""


@dataclass(slots=True)
class ConductorRetry:
    """The last error of a conductor. Any thread may read `text`."""

    job: CopyJob
    """Names the connector and the sides of its clusters."""
    _backoff: Backoff = field(
        default_factory=lambda: Backoff(initial_s=FIRST_RETRY_S, max_s=LAST_RETRY_S)
    )
    _failure: str = ""
    _retry: str = ""
    """The error of a call that is tried again while the conductor waits for it."""
    _retry_at: float = 0.0

    @property
    def text(self) -> str:
        """Why the conductor waits for a cluster, or why it failed last; empty if it is well."""
        return self._retry or self._failure

    def is_due(self, now: float) -> bool:
        """Return whether the conductor may work: it is well, or has waited since its failure."""
        return now >= self._retry_at

    def on_retry(self, error: ClusterError) -> None:
        """Note the error of a call that is tried again."""
        self._retry = with_side(error, self.job.settings)

    def on_success(self) -> None:
        """Note that all work was done."""
        if self._failure:
            log.info(
                "Connector %s: the conductor continues after: %s", self.job.connector, self._failure
            )
        self._failure = self._retry = ""
        self._retry_at = 0.0
        self._backoff.reset()

    def on_failure(self, error: MirrorError, now: float) -> None:
        """Note why work failed. The pause before the next try grows with every failure."""
        text = with_side(error, self.job.settings)
        if not same_causes(text, self._failure):
            log.warning("Connector %s: %s", self.job.connector, text)
        self._failure, self._retry = text, ""
        self._retry_at = now + self._backoff.next_delay_s()
