"""Only peers with the secret can authenticate and decrypt, and no frame is accepted twice."""

from __future__ import annotations

import itertools
from dataclasses import astuple

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.encryption import (
    NONCE_BYTES,
    TAG_BYTES,
    CipherPair,
    ControlAuthenticationError,
    HandshakeKeys,
    answer_challenge,
    new_challenge,
    verify_answer,
    verify_driver,
)

SECRET = b"a secret of one run"


def pair() -> tuple[CipherPair, CipherPair]:
    """Return the ciphers of a task and of its driver."""
    challenge = new_challenge()
    answer, keys = answer_challenge(SECRET, challenge)
    return keys.task_ciphers(), verify_answer(SECRET, challenge, answer).driver_ciphers()


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


def test_no_two_proofs_or_keys_of_a_connection_are_equal() -> None:
    challenge = new_challenge()
    answer, keys = answer_challenge(SECRET, challenge)
    assert verify_answer(SECRET, challenge, answer) == keys
    proofs_and_keys = [*astuple(keys)[:2], *itertools.chain(*astuple(keys)[2:])]
    assert len(set(proofs_and_keys)) == 6
    assert all(len(each) == 32 for each in proofs_and_keys)
    assert not any(each in answer for each in proofs_and_keys[1:]), "the answer shows one proof"


def test_keys_are_those_of_hkdf_expand() -> None:
    """The first block of RFC 5869, computed here with `cryptography`."""
    keys = HandshakeKeys.derive(SECRET, b"a" * NONCE_BYTES, b"b" * NONCE_BYTES)
    info = b"sparkmirror control channel 2/task proof/" + b"a" * NONCE_BYTES + b"b" * NONCE_BYTES
    assert keys.task_proof == HKDFExpand(SHA256(), 32, info).derive(SECRET)


def test_neither_proofs_nor_keys_are_in_a_repr() -> None:
    assert repr(HandshakeKeys.derive(SECRET, bytes(32), bytes(32))) == "HandshakeKeys()"


def test_only_the_proof_of_the_driver_authenticates_the_driver() -> None:
    _, keys = answer_challenge(SECRET, new_challenge())
    verify_driver(keys, keys.driver_proof)
    _, others = answer_challenge(SECRET, new_challenge())
    for wrong in (keys.task_proof, others.driver_proof, keys.driver_proof[:-1], bytes(32), b""):
        with pytest.raises(ControlAuthenticationError, match="secret"):
            verify_driver(keys, wrong)


def test_a_proof_is_valid_for_one_challenge_and_one_secret() -> None:
    challenge = new_challenge()
    answer, _ = answer_challenge(SECRET, challenge)
    verify_answer(SECRET, challenge, answer)
    for secret, other_challenge, other_answer in (
        (b"another secret", challenge, answer),
        (SECRET, new_challenge(), answer),
        (SECRET, challenge, bytes(NONCE_BYTES) + answer[NONCE_BYTES:]),
        (SECRET, challenge, answer[:NONCE_BYTES]),
        (SECRET, challenge, answer + b"!"),
        (SECRET, challenge, b""),
    ):
        with pytest.raises(ControlAuthenticationError, match="secret"):
            verify_answer(secret, other_challenge, other_answer)
