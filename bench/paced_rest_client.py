"""A client that sends read requests to one worker at a steady pace, until SIGTERM.

    python -m bench.paced_rest_client ADDRESS PAUSE_S PATHS DURATIONS

Each request has a connection of its own, as a script with curl has. The file PATHS has the paths to
ask for. The file DURATIONS gets two numbers of milliseconds for each request: how long it took, and
how much later than it asked for the client woke up before it. The second one says how long a
process waits for a processor at that time. The client is a process of its own, so that nothing else
in it delays a measured request. It has the first claim to a processor, if the user may give it
that: clients of a worker are on other computers.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path

REQUEST_TIMEOUT_S = 60.0
_PRIORITY = -15
"""As a nice value; below 0 only root may set it."""
_AUTOGROUP = Path("/proc/self/autogroup")
"""Where Linux divides processors by session, the session's priority counts, not the process's."""


def main() -> None:
    """Send requests until SIGTERM."""
    address, pause_s, paths_file, durations_file = sys.argv[1:]
    paths = Path(paths_file).read_text("utf-8").split()
    _raise_priority()
    ends = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ends.set())
    with Path(durations_file).open("w", encoding="utf-8") as lines:
        for path in itertools.cycle(paths):
            asleep_at = time.perf_counter()
            if ends.wait(float(pause_s)):
                return
            late_ms = (time.perf_counter() - asleep_at - float(pause_s)) * 1000
            lines.write(f"{_request_ms(address, path):.3f} {late_ms:.3f}\n")
            lines.flush()


def _raise_priority() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
        _AUTOGROUP.write_text(str(_PRIORITY), "ascii")


def _request_ms(address: str, path: str) -> float:
    begun = time.perf_counter()
    connection = http.client.HTTPConnection(address, timeout=REQUEST_TIMEOUT_S)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    finally:
        connection.close()
    return (time.perf_counter() - begun) * 1000


if __name__ == "__main__":
    main()
