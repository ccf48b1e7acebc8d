"""Seals: who knows the secret is let in and understood, nobody else, and nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.encryption import (
    NONCE_BYTES,
    TAG_BYTES,
    CipherPair,
    ControlAuthenticationError,
    answer_challenge,
    new_challenge,
    verify_answer,
)

SECRET = b"a secret of one run"


def pair() -> tuple[CipherPair, CipherPair]:
    """The seals of a task and of its driver."""
    challenged = new_challenge()
    answered, task = answer_challenge(SECRET, challenged)
    return task, verify_answer(SECRET, challenged, answered)


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_what_one_end_seals_the_other_opens_both_ways(payloads: list[bytes]) -> None:
    task, driver = pair()
    for payload in payloads:
        assert driver.incoming.decrypt(task.outgoing.encrypt(payload)) == payload
        assert task.incoming.decrypt(driver.outgoing.encrypt(payload)) == payload


def test_the_same_words_never_look_the_same() -> None:
    task, driver = pair()
    other, _ = pair()
    seals = (task.outgoing, task.outgoing, driver.outgoing, other.outgoing)
    frames = [seal.encrypt(b"the same words") for seal in seals]
    assert len(set(frames)) == len(frames)
    assert all(b"words" not in frame for frame in frames)


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_changed_bit_anywhere_breaks_the_seal(payload: bytes, data: st.DataObject) -> None:
    task, driver = pair()
    frame = bytearray(task.outgoing.encrypt(payload))
    at = data.draw(st.integers(0, len(frame) * 8 - 1))
    frame[at // 8] ^= 1 << at % 8
    with pytest.raises(ControlAuthenticationError):
        driver.incoming.decrypt(bytes(frame))


def test_what_is_repeated_left_out_sent_back_or_cut_is_not_believed() -> None:
    task, driver = pair()
    first, second = task.outgoing.encrypt(b"one"), task.outgoing.encrypt(b"two")
    assert driver.incoming.decrypt(first) == b"one"
    with pytest.raises(ControlAuthenticationError):
        driver.incoming.decrypt(first)
    for wrong in (second, second[:-1], second[:TAG_BYTES], b""):
        with pytest.raises(ControlAuthenticationError):
            pair()[1].incoming.decrypt(wrong)
    with pytest.raises(ControlAuthenticationError):
        task.incoming.decrypt(first)


def test_a_proof_is_good_for_one_challenge_and_one_secret() -> None:
    challenged = new_challenge()
    answered, _ = answer_challenge(SECRET, challenged)
    verify_answer(SECRET, challenged, answered)
    for secret, asked, said in (
        (b"another secret", challenged, answered),
        (SECRET, new_challenge(), answered),
        (SECRET, challenged, bytes(NONCE_BYTES) + answered[NONCE_BYTES:]),
        (SECRET, challenged, answered[:NONCE_BYTES]),
    ):
        with pytest.raises(ControlAuthenticationError, match="secret"):
            verify_answer(secret, asked, said)
