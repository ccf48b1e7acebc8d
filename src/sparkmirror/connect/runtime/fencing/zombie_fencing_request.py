"""Fences older task producers (exactly-once support): by itself as the leader, else through it."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkmirror.backoff import Backoff
from sparkmirror.connect.runtime.task_configs_writer import GroupLink
from sparkmirror.errors import ConnectRestError, RebalanceNeeded, RequestFailed

LEADER_TIMEOUT_S = 30.0
"""How long a task that starts waits for a leader that fences."""
_NOT_FOUND = 404


class ZombieFencingRequest:
    """Called before tasks of a new set start. Any thread may call; a call blocks."""

    def __init__(
        self,
        group: GroupLink,
        fence_here: Callable[[str], None],
        timeout_s: float = LEADER_TIMEOUT_S,
    ) -> None:
        """`fence_here` fences as the leader does."""
        self._group = group
        self._fence_here = fence_here
        self._timeout_s = timeout_s

    def __call__(self, connector: str) -> None:
        """Fence. Tries again while the leader is not known or does not answer.

        A leader that has no such connector ends the attempt: the connector was deleted.
        """
        deadline, backoff = time.monotonic() + self._timeout_s, Backoff(initial_s=0.1, max_s=2.0)
        while True:
            try:
                leader_url = self._group.leader_url()
                if leader_url:
                    self._group.leader_requests.fence_zombies(leader_url, connector)
                else:
                    self._fence_here(connector)
                return
            except (RebalanceNeeded, RequestFailed) as error:
                if time.monotonic() > deadline or _is_unknown_connector(error):
                    raise
                time.sleep(backoff.next_delay_s())


def _is_unknown_connector(error: Exception) -> bool:
    return isinstance(error, ConnectRestError) and error.status == _NOT_FOUND
