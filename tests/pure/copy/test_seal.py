"""Seals: who knows the secret is let in and understood, nobody else, and nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.seal import HALF, TAG, SealBroken, Seals, answer, challenge, check

SECRET = b"a secret of one run"


def pair() -> tuple[Seals, Seals]:
    """The seals of a task and of its driver."""
    challenged = challenge()
    answered, task = answer(SECRET, challenged)
    return task, check(SECRET, challenged, answered)


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_what_one_end_seals_the_other_opens_both_ways(payloads: list[bytes]) -> None:
    task, driver = pair()
    for payload in payloads:
        assert driver.incoming.open(task.outgoing.close(payload)) == payload
        assert task.incoming.open(driver.outgoing.close(payload)) == payload


def test_the_same_words_never_look_the_same() -> None:
    task, driver = pair()
    other, _ = pair()
    seals = (task.outgoing, task.outgoing, driver.outgoing, other.outgoing)
    frames = [seal.close(b"the same words") for seal in seals]
    assert len(set(frames)) == len(frames)
    assert all(b"words" not in frame for frame in frames)


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_changed_bit_anywhere_breaks_the_seal(payload: bytes, data: st.DataObject) -> None:
    task, driver = pair()
    frame = bytearray(task.outgoing.close(payload))
    at = data.draw(st.integers(0, len(frame) * 8 - 1))
    frame[at // 8] ^= 1 << at % 8
    with pytest.raises(SealBroken):
        driver.incoming.open(bytes(frame))


def test_what_is_repeated_left_out_sent_back_or_cut_is_not_believed() -> None:
    task, driver = pair()
    first, second = task.outgoing.close(b"one"), task.outgoing.close(b"two")
    assert driver.incoming.open(first) == b"one"
    with pytest.raises(SealBroken):
        driver.incoming.open(first)
    for wrong in (second, second[:-1], second[:TAG], b""):
        with pytest.raises(SealBroken):
            pair()[1].incoming.open(wrong)
    with pytest.raises(SealBroken):
        task.incoming.open(first)


def test_a_proof_is_good_for_one_challenge_and_one_secret() -> None:
    challenged = challenge()
    answered, _ = answer(SECRET, challenged)
    check(SECRET, challenged, answered)
    for secret, asked, said in (
        (b"another secret", challenged, answered),
        (SECRET, challenge(), answered),
        (SECRET, challenged, bytes(HALF) + answered[HALF:]),
        (SECRET, challenged, answered[:HALF]),
    ):
        with pytest.raises(SealBroken, match="secret"):
            check(secret, asked, said)
