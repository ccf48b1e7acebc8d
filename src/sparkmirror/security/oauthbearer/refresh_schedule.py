"""When a token is renewed: the `sasl.login.refresh.*` and `sasl.login.retry.*` keys. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.tables.client.sasl import CLIENT_SASL

_MIN_PAUSE_S = 0.05
_MIN_LONGEST_PAUSE_S = 1.0
"""Without a pause, a login would flood a server that is down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSchedule:
    """The keys of Java's refreshing login, with its defaults."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: float = 60.0
    buffer_s: float = 300.0
    retry_backoff_s: float = 0.1
    retry_backoff_max_s: float = 10.0

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read the keys. Raises ConfigError."""
        return cls(
            window_factor=read_number(properties, "sasl.login.refresh.window.factor"),
            window_jitter=read_number(properties, "sasl.login.refresh.window.jitter"),
            min_period_s=read_number(properties, "sasl.login.refresh.min.period.seconds"),
            buffer_s=read_number(properties, "sasl.login.refresh.buffer.seconds"),
            retry_backoff_s=read_number(properties, "sasl.login.retry.backoff.ms") / 1000,
            retry_backoff_max_s=read_number(properties, "sasl.login.retry.backoff.max.ms") / 1000,
        )

    def refresh_at_s(self, now_s: float, expires_at_s: float, spread: float) -> float:
        """Return when to renew a token of now. `spread` is between 0 and 1 and random.

        As in Java, the buffer and the minimum period count only for a token that outlives both.
        """
        lifetime_s = expires_at_s - now_s
        window_s = lifetime_s * (self.window_factor + self.window_jitter * spread)
        refresh_at_s = now_s + min(window_s, lifetime_s)
        if self.min_period_s + self.buffer_s > lifetime_s:
            return refresh_at_s
        return max(min(refresh_at_s, expires_at_s - self.buffer_s), now_s + self.min_period_s)

    def retry_after_s(self, failures: int) -> float:
        """Return the pause after so many failures in a row: it doubles up to the maximum."""
        assert failures > 0
        exponent = min(failures - 1, 30)
        pause_s = max(self.retry_backoff_s, _MIN_PAUSE_S) * 2.0**exponent
        return min(pause_s, self.longest_pause_s)

    @property
    def longest_pause_s(self) -> float:
        """The longest pause between two attempts."""
        return max(self.retry_backoff_max_s, _MIN_LONGEST_PAUSE_S)


def read_number(properties: Mapping[str, str], key: str) -> float:
    """Return the number of a `sasl.*` key; its default if it is not set. Raises ConfigError."""
    value = read_optional_number(properties, key)
    assert value is not None, f"{key} has a default"
    return value


def read_optional_number(properties: Mapping[str, str], key: str) -> float | None:
    """Return the number of a `sasl.*` key; None without value and default. Raises ConfigError."""
    given = {key: properties[key]} if key in properties else {}
    value = CLIENT_SASL.parse(given)[key]
    if value is None:
        return None
    assert isinstance(value, int | float), key
    return float(value)
