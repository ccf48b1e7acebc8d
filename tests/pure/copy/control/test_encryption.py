"""Only peers with the secret can authenticate and decrypt, and no frame is accepted twice."""

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
    """Return the ciphers of a task and of its driver."""
    challenge = new_challenge()
    answer, task = answer_challenge(SECRET, challenge)
    return task, verify_answer(SECRET, challenge, answer)


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_each_end_decrypts_what_the_other_encrypts(payloads: list[bytes]) -> None:
    task, driver = pair()
    for payload in payloads:
        assert driver.incoming.decrypt(task.outgoing.encrypt(payload)) == payload
        assert task.incoming.decrypt(driver.outgoing.encrypt(payload)) == payload


def test_the_same_payload_never_has_the_same_frame() -> None:
    task, driver = pair()
    other, _ = pair()
    ciphers = (task.outgoing, task.outgoing, driver.outgoing, other.outgoing)
    frames = [cipher.encrypt(b"the same payload") for cipher in ciphers]
    assert len(set(frames)) == len(frames)
    assert all(b"payload" not in frame for frame in frames)


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_changed_bit_anywhere_is_detected(payload: bytes, data: st.DataObject) -> None:
    task, driver = pair()
    frame = bytearray(task.outgoing.encrypt(payload))
    at = data.draw(st.integers(0, len(frame) * 8 - 1))
    frame[at // 8] ^= 1 << at % 8
    with pytest.raises(ControlAuthenticationError):
        driver.incoming.decrypt(bytes(frame))


def test_repeated_skipped_returned_or_cut_frames_are_rejected() -> None:
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


def test_a_proof_is_valid_for_one_challenge_and_one_secret() -> None:
    challenge = new_challenge()
    answer, _ = answer_challenge(SECRET, challenge)
    verify_answer(SECRET, challenge, answer)
    for secret, other_challenge, other_answer in (
        (b"another secret", challenge, answer),
        (SECRET, new_challenge(), answer),
        (SECRET, challenge, bytes(NONCE_BYTES) + answer[NONCE_BYTES:]),
        (SECRET, challenge, answer[:NONCE_BYTES]),
    ):
        with pytest.raises(ControlAuthenticationError, match="secret"):
            verify_answer(secret, other_challenge, other_answer)
