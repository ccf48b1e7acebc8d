"""The priority of the driver's session, with Spark's JVM and slots, beside other sessions.

Linux divides the processor among sessions before it divides it among the processes of each
(autogroup). A driver that takes over many connectors at once can keep every core busy for many
seconds, just when the worker has to answer requests. So it lowers its priority meanwhile, and
raises it to the usual one afterwards. While it copies, and while it starts the tasks of a few
connectors, it has the usual priority.

Where the system has no autogroups, or control groups divide the processor, nothing changes.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

USUAL = 0
LOW = 10
"""About a ninth of the processor time of a session with the usual priority, if both want all."""
MANY_STARTS = 6
"""So many jobs that start within STARTS_S are a takeover of many connectors."""
STARTS_S = 10.0
AUTOGROUP = Path("/proc/self/autogroup")


def wanted_priority(starts: int) -> int:
    """Return the priority of a driver in which so many jobs began within STARTS_S. Pure."""
    return LOW if starts >= MANY_STARTS else USUAL


def leads_session() -> bool:
    """Whether this process began its session, so that the session has nothing but this driver."""
    return os.getsid(0) == os.getpid()


class SessionPriority:
    """Sets the priority. One thread owns it."""

    def __init__(
        self, clock: Callable[[], float], file: Path = AUTOGROUP, *, is_own_session: bool
    ) -> None:
        """A session that has other processes, too, keeps its priority."""
        self._clock = clock
        self._file = file
        self._is_changeable = is_own_session
        self._starts: deque[float] = deque()
        self._priority = USUAL

    def on_job_started(self) -> None:
        """Note the start of a job."""
        self._starts.append(self._clock())

    def update(self) -> None:
        """Set what the last starts ask for. The next call repeats a change that came too soon.

        The system allows about ten changes a second.
        """
        began = self._clock() - STARTS_S
        while self._starts and self._starts[0] < began:
            self._starts.popleft()
        wanted = wanted_priority(len(self._starts))
        if wanted == self._priority or not self._is_changeable:
            return
        try:
            self._file.write_text(f"{wanted}\n", "ascii")
        except OSError as error:
            self._is_changeable = error.errno == errno.EAGAIN
            log.debug("The session keeps priority %d: %s", self._priority, error)
        else:
            log.debug("The session has priority %d instead of %d", wanted, self._priority)
            self._priority = wanted
