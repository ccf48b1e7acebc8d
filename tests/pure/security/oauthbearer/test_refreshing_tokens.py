"""One token is kept, renewed in the background, and shared by equal settings."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from sparkmirror.config.secrets.password import Password
from sparkmirror.security.oauthbearer.refresh_schedule import RefreshSchedule
from sparkmirror.security.oauthbearer.refreshing_tokens import RefreshingTokens
from sparkmirror.security.oauthbearer.shared_sources import shared_token_source
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken
from sparkmirror.security.sasl_credentials import TokenUnavailable
from tests.support.waiting import wait_until

FAST = RefreshSchedule(
    window_factor=1e-5, window_jitter=0, min_period_s=0, buffer_s=0, retry_backoff_s=0.05
)
"""Renews a token that is valid for long after a moment."""


@dataclass(eq=False)
class ScriptedRetriever:
    """Supplies token-1, token-2 and so on, or fails with the problem."""

    name: str = "the server"
    problem: str = ""
    count: int = 0
    clock: Callable[[], float] = time.time
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def retrieve(self) -> RetrievedToken:
        self.may_answer.wait(30)
        if self.problem:
            raise TokenUnavailable(self.problem)
        self.count += 1
        now_s = self.clock()
        return RetrievedToken(
            value=Password(f"token-{self.count}"),
            retrieved_at_s=now_s,
            expires_at_s=now_s + 3600.0,
        )


def refresh_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "token-refresh"}


def test_twenty_connections_retrieve_one_token() -> None:
    retriever = ScriptedRetriever()
    retriever.may_answer.clear()
    source = RefreshingTokens(retriever, extensions={"tenant": "t1"})
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(source.token, "b1") for _ in range(20)]
        retriever.may_answer.set()
        tokens = [one.result(30) for one in waiting]
    assert {token.value.value for token in tokens} == {"token-1"}
    assert tokens[0].extensions == {"tenant": "t1"}
    assert retriever.count == 1


def test_a_token_is_renewed_before_it_expires_without_a_caller() -> None:
    retriever = ScriptedRetriever()
    source = RefreshingTokens(retriever, FAST)
    source.token("b1")
    wait_until(lambda: retriever.count > 2, "the token is renewed")


def test_a_caller_gets_the_kept_token_while_a_renewal_hangs() -> None:
    retriever = ScriptedRetriever()
    source = RefreshingTokens(retriever, FAST)
    source.token("b1")
    retriever.may_answer.clear()
    kept = retriever.count
    assert source.token("b1").value.value in (f"token-{kept}", f"token-{kept + 1}")
    retriever.may_answer.set()


def test_without_a_first_token_the_reason_is_raised_and_later_callers_do_not_wait() -> None:
    retriever = ScriptedRetriever(problem="it answered 401 invalid_client")
    source = RefreshingTokens(retriever, FAST)
    for _ in range(3):
        with pytest.raises(TokenUnavailable, match="the server: it answered 401 invalid_client"):
            source.token("b1")
    retriever.problem = ""
    wait_until(lambda: retriever.count > 1, "the source tries again by itself")
    assert source.token("b1").value.value.startswith("token-")


def test_an_expired_token_is_refused_with_the_reason_until_the_server_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = [1000.0]
    retriever = ScriptedRetriever(clock=lambda: time.time() + now_s[0])
    source = RefreshingTokens(retriever, FAST, clock=retriever.clock)
    source.token("b1")
    retriever.problem = "connection refused"
    wait_until(lambda: "connection refused" in caplog.text, "a renewal fails")
    assert source.token("b1").value.value.startswith("token-")
    now_s[0] += 4000.0
    with pytest.raises(TokenUnavailable, match="connection refused") as caught:
        source.token("b1")
    assert caught.value.retriable
    retriever.problem = ""

    def is_back() -> bool:
        try:
            return bool(source.token("b1").value.value)
        except TokenUnavailable:
            return False

    wait_until(is_back, "the token is renewed")


def test_a_failure_is_logged_once_per_reason_and_the_recovery_with_the_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    retriever = ScriptedRetriever(problem="reason one")
    source = RefreshingTokens(retriever, FAST)

    def failures() -> int:
        try:
            source.token("b1")
        except TokenUnavailable as error:
            text = str(error)
            return int(text.split("(")[1].split()[0]) if "(" in text else 1
        return 0

    wait_until(lambda: failures() >= 3, "three attempts fail")
    retriever.problem = "reason two"
    wait_until(lambda: "reason two" in caplog.text, "the other reason is logged")
    retriever.problem = ""
    wait_until(lambda: "failed attempts" in caplog.text, "the recovery is logged")
    assert caplog.text.count("reason one") == 1
    assert caplog.text.count("reason two") == 1


def test_a_callback_that_raises_anything_is_an_unavailable_token() -> None:
    class Broken(ScriptedRetriever):
        def retrieve(self) -> RetrievedToken:
            raise RuntimeError("s3cret")

    with pytest.raises(TokenUnavailable, match="RuntimeError in its callback") as caught:
        RefreshingTokens(Broken(), FAST).token("b1")
    assert "s3cret" not in str(caught.value)


def test_equal_settings_share_a_source_and_it_ends_with_its_last_login() -> None:
    retriever, extensions = ScriptedRetriever(), {"a": "b"}
    before = refresh_threads()
    source = shared_token_source(retriever, FAST, extensions)
    assert shared_token_source(retriever, RefreshSchedule.from_properties({}), extensions) is not (
        source
    )
    again = shared_token_source(retriever, FAST, dict(extensions))
    assert again is source
    source.token("b1")
    (thread,) = refresh_threads() - before
    del source, again
    gc.collect()
    wait_until(lambda: not thread.is_alive(), "the thread of an unused source ends")
