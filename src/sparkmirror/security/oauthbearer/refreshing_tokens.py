"""Keeps one token and renews it in the background.

    token(host) ──▶ the token that is kept, at once
                     ▲
    refresh thread ──┘ retrieves the first one, renews it before it expires, retries failures

The thread starts with the first call of `token` and ends when no login has the source any more.
Only the thread retrieves. So a caller waits only for the very first attempt: a re-authentication
inside an event loop never waits for a token server, and many connections retrieve one token.
When the token has expired, callers get TokenUnavailable with the reason, until the thread succeeds.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkmirror.backoff import JITTER
from sparkmirror.security.oauthbearer.refresh_schedule import RefreshSchedule
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken, TokenRetriever
from sparkmirror.security.sasl_credentials import BearerToken, TokenUnavailable

log = logging.getLogger(__name__)

FIRST_WAIT_S = 20.0
"""How long a caller waits for the first attempt."""
_MAX_WAIT_S = 60.0
"""The thread looks at the wall clock at least so often: a host that slept has another time."""


@dataclass(slots=True)
class _State:
    """What the callers and the thread share. The condition protects all of it."""

    changed: threading.Condition
    token: RetrievedToken | None = None
    problem: str = ""
    """Why the last attempt failed; empty after a success."""
    failures: int = 0
    """Failed attempts since the last success."""
    is_tried: bool = False
    is_closed: bool = False
    thread: threading.Thread | None = None


class RefreshingTokens:
    """A token source that renews its token. Thread-safe."""

    def __init__(
        self,
        retriever: TokenRetriever,
        schedule: RefreshSchedule | None = None,
        extensions: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._retriever = retriever
        self._schedule = schedule or RefreshSchedule()
        self._extensions = dict(extensions or {})
        self._clock = clock
        self._state = _State(changed=threading.Condition())
        weakref.finalize(self, _close, self._state)

    def __repr__(self) -> str:
        return f"RefreshingTokens({self._retriever.name})"

    def token(self, host: str) -> BearerToken:
        """Return the token that is kept. Raises TokenUnavailable."""
        state = self._state
        with state.changed:
            if state.thread is None:
                state.thread = threading.Thread(
                    target=_refresh,
                    args=(state, self._retriever, self._schedule, self._clock),
                    name="token-refresh",
                    daemon=True,
                )
                state.thread.start()
            state.changed.wait_for(lambda: state.is_tried, FIRST_WAIT_S)
            token = state.token
            if token is not None and self._clock() < token.expires_at_s:
                return BearerToken(
                    value=token.value, extensions={**self._extensions, **token.extensions}
                )
            raise TokenUnavailable(self._problem(state))

    def _problem(self, state: _State) -> str:
        name = self._retriever.name
        if not state.is_tried:
            return f"{name}: no answer within {FIRST_WAIT_S:.0f} seconds"
        reason = state.problem or "it has expired and is about to be renewed"
        tries = f" ({state.failures} attempts failed)" if state.failures > 1 else ""
        return f"{name}: {reason}{tries}"


def _close(state: _State) -> None:
    with state.changed:
        state.is_closed = True
        state.changed.notify_all()


def _refresh(
    state: _State,
    retriever: TokenRetriever,
    schedule: RefreshSchedule,
    clock: Callable[[], float],
) -> None:
    """Run the thread: retrieve, wait, retrieve again, until the source is closed."""
    while True:
        pause_s = _retrieve(state, retriever, schedule, clock)
        wake_at_s = clock() + pause_s
        with state.changed:
            state.changed.notify_all()
            while (left_s := wake_at_s - clock()) > 0 and not state.is_closed:
                state.changed.wait(min(left_s, _MAX_WAIT_S))
            if state.is_closed:
                return


def _retrieve(
    state: _State,
    retriever: TokenRetriever,
    schedule: RefreshSchedule,
    clock: Callable[[], float],
) -> float:
    """Make one attempt. Returns the seconds until the next one."""
    try:
        token = retriever.retrieve()
    except TokenUnavailable as error:
        return _on_failure(state, retriever, schedule, str(error))
    except Exception as error:  # noqa: BLE001 - the thread must outlive a callback that is broken
        return _on_failure(state, retriever, schedule, f"{type(error).__name__} in its callback")
    with state.changed:
        failures, state.failures, state.problem = state.failures, 0, ""
        state.token, state.is_tried = token, True
    if failures:
        log.info("%s: the token is renewed after %d failed attempts", retriever.name, failures)
    now_s = clock()
    spread = JITTER.random()
    return max(schedule.refresh_at_s(now_s, token.expires_at_s, spread) - now_s, 0.0)


def _on_failure(
    state: _State, retriever: TokenRetriever, schedule: RefreshSchedule, problem: str
) -> float:
    """Keep the reason. Logs a reason once, until another one or a success follows."""
    with state.changed:
        is_new = problem != state.problem
        state.problem, state.is_tried = problem, True
        state.failures += 1
        failures = state.failures
    pause_s = schedule.retry_after_s(failures)
    if is_new:
        log.warning(
            "%s: the token cannot be renewed, attempt %d: %s; the next attempts follow after"
            " at most %.0f seconds each, and are logged when the reason changes",
            retriever.name, failures, problem, schedule.longest_pause_s,
        )  # fmt: skip
    return pause_s
