"""Pauses between retries."""

from __future__ import annotations

import random

from sparkmirror.backoff import Backoff


def test_pauses_double_up_to_the_longest_and_begin_again_after_a_reset() -> None:
    backoff = Backoff(initial_s=1.0, max_s=4.0, jitter=0.0)
    assert [backoff.next_delay_s() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    backoff.reset()
    assert backoff.next_delay_s() == 1.0


def test_pauses_lie_within_the_jitter() -> None:
    pauses = [Backoff(initial_s=1.0, jitter=0.2).next_delay_s() for _ in range(100)]
    assert all(0.8 <= pause <= 1.2 for pause in pauses)


def test_processes_with_the_same_random_state_do_not_pause_in_step() -> None:
    """Spark forks its Python workers from one process."""
    pauses = set()
    for _ in range(5):
        random.seed(1)
        pauses.add(Backoff().next_delay_s())
    assert len(pauses) == 5
