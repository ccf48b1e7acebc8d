"""When a token is renewed: Java's rules."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.refresh_schedule import RefreshSchedule

HOUR = 3600.0


@pytest.mark.parametrize(
    ("lifetime_s", "spread", "expected_s"),
    [
        (HOUR, 0.0, 0.8 * HOUR),
        (HOUR, 1.0, 0.85 * HOUR),
        (1000.0, 1.0, 700.0),
        (365.0, 0.0, 65.0),
        (300.0, 0.0, 240.0),
        (10.0, 1.0, 8.5),
    ],
    ids=["factor", "jitter", "buffer", "both", "shorter than the buffer", "short"],
)
def test_a_token_is_renewed_in_its_window(
    lifetime_s: float, spread: float, expected_s: float
) -> None:
    found = RefreshSchedule().refresh_at_s(100.0, 100.0 + lifetime_s, spread)
    assert found == pytest.approx(100.0 + expected_s)


def test_the_minimum_period_counts_for_a_long_lifetime() -> None:
    schedule = RefreshSchedule(window_factor=0.5, min_period_s=900.0, buffer_s=0.0)
    assert schedule.refresh_at_s(0.0, 1000.0, 0.0) == 900.0


def test_the_keys_of_java_are_read() -> None:
    schedule = RefreshSchedule.from_properties(
        {
            "sasl.login.refresh.window.factor": "0.6",
            "sasl.login.refresh.window.jitter": "0",
            "sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "2",
            "sasl.login.retry.backoff.ms": "200",
            "sasl.login.retry.backoff.max.ms": "3000",
        }
    )
    assert schedule == RefreshSchedule(
        window_factor=0.6,
        window_jitter=0.0,
        min_period_s=1.0,
        buffer_s=2.0,
        retry_backoff_s=0.2,
        retry_backoff_max_s=3.0,
    )
    assert RefreshSchedule.from_properties({}) == RefreshSchedule()
    with pytest.raises(ConfigError, match=r"sasl\.login\.refresh\.window\.factor"):
        RefreshSchedule.from_properties({"sasl.login.refresh.window.factor": "2"})


def test_the_pause_between_attempts_doubles_up_to_the_maximum() -> None:
    schedule = RefreshSchedule(retry_backoff_s=0.1, retry_backoff_max_s=1.0)
    assert [schedule.retry_after_s(n) for n in (1, 2, 3, 4, 5, 500)] == [
        0.1, 0.2, 0.4, 0.8, 1.0, 1.0,
    ]  # fmt: skip
