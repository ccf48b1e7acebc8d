"""A selector that watches a cancel signal wakes when the signal is set."""

from __future__ import annotations

import select
from contextlib import closing

from sparkmirror.wire.net.cancel_signal import CancelSignal


def is_readable(signal: CancelSignal) -> bool:
    return bool(select.select([signal], [], [], 0)[0])


def test_a_selector_sees_the_signal_whether_it_watched_before_or_after() -> None:
    with closing(CancelSignal()) as before, closing(CancelSignal()) as after:
        assert not is_readable(before)
        for signal in (before, after):
            signal.set()
            signal.set()
            assert signal.is_set()
            assert is_readable(signal)


def test_a_closed_signal_can_be_set() -> None:
    signal = CancelSignal()
    signal.fileno()
    signal.close()
    signal.set()
    assert signal.is_set()
