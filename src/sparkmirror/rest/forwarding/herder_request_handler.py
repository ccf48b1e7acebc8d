"""Carries out a request here, or on the worker of the group that can.

the herder carries it out            the answer
NotLeader, NotOwner                  the answer of that worker; 409 if `forward` forbids it
RebalanceNeeded, no URL, no          tried again until the time is over: the group may have
connection                           another leader or owner soon
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from sparkmirror.backoff import Backoff
from sparkmirror.connect.herder.worker_settings import REQUEST_TIMEOUT_S, WRITE_TIMEOUT_S
from sparkmirror.errors import Conflict, NotLeader, NotOwner, RebalanceNeeded, RequestFailed
from sparkmirror.rest.client.rest_client import RestClient, WorkerUnreachable
from sparkmirror.rest.forwarding.forwarded_request import ForwardableRequest
from sparkmirror.rest.http.call import Reply

log = logging.getLogger(__name__)

NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was"
    " underway."
)
CONFLICT: Final = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)
FORWARDED_TIMEOUT_S: Final = REQUEST_TIMEOUT_S + 2.0
"""Longer than the other worker's own timeout, whose error says what it waited for."""
FIRST_PAUSE_S: Final = 0.05
MAX_PAUSE_S: Final = 0.5


class HerderRequestHandler:
    """Completes or forwards requests. Any thread may call it."""

    def __init__(
        self,
        client: RestClient,
        patience_s: float = WRITE_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`patience_s` is how long a request waits for the end of a rebalance.

        A request that another worker has forwarded waits half as long, because that one waits too.
        """
        self._client = client
        self._patience_s = patience_s
        self._clock = clock
        self._sleep = sleep

    def complete_or_forward(
        self, handle: Callable[[], Reply], request: ForwardableRequest
    ) -> Reply:
        """Return the answer of `handle`, or of the worker that its error names.

        `handle` is called again after a pause if no worker can carry out the request now. Raises
        MirrorError.
        """
        patience_s = self._patience_s if request.forward is None else self._patience_s / 2
        deadline = self._clock() + patience_s
        pauses = Backoff(initial_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S)
        while True:
            try:
                return self._try_once(handle, request)
            except (RebalanceNeeded, _NoUrl, _Unreachable) as error:
                pause_s = pauses.next_delay_s()
                if self._clock() + pause_s > deadline:
                    raise
                log.debug("%s %s is tried again: %s", request.method, request.raw_path, error)
                self._sleep(pause_s)

    def _try_once(self, handle: Callable[[], Reply], request: ForwardableRequest) -> Reply:
        try:
            return handle()
        except (NotLeader, NotOwner) as error:
            return self._forward(error, request)

    def _forward(self, error: NotLeader | NotOwner, request: ForwardableRequest) -> Reply:
        if not request.may_be_forwarded:
            log.error(
                "Request '%s %s' failed because it couldn't find the target Connect worker within"
                " two hops (between workers).",
                request.method,
                request.raw_path,
            )
            raise Conflict(CONFLICT)
        if not error.url:
            raise _NoUrl(NO_LEADER)
        role = "leader" if isinstance(error, NotLeader) else "owner"
        url = request.url_at(error.url)
        log.debug("Forwarding %s %s to the %s", request.method, url, role)
        try:
            answer = self._client.send(
                request.method,
                url,
                request.sent_headers(),
                request.body,
                timeout_s=FORWARDED_TIMEOUT_S,
            )
        except WorkerUnreachable as failure:
            raise _Unreachable(_io_error(role, failure)) from failure
        except RequestFailed as failure:
            raise RequestFailed(_io_error(role, failure)) from failure
        return request.reply(answer)


class _NoUrl(Conflict):
    """No worker leads the group, or runs the connector or task, at this moment."""


class _Unreachable(RequestFailed):
    """The leader or owner accepts no connection: it may be replaced soon."""


def _io_error(role: str, failure: RequestFailed) -> str:
    return f"IO Error trying to forward REST request: the {role} does not answer: {failure}"
