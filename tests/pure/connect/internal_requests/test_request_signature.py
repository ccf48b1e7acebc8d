"""Signatures of requests between workers are those of Connect."""

from __future__ import annotations

import json

import pytest

from sparkmirror.config.definition.worker_validators import MAC_ALGORITHMS
from sparkmirror.connect.internal_requests.request_signature import (
    ALGORITHM_HEADER,
    SIGNATURE_HEADER,
    InternalRequestSignature,
)
from sparkmirror.errors import BadRequest
from sparkmirror.mirror.connect_topics.connect_configs import SessionKey, decode_config_record
from tests.support.golden import golden_records
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges

KEY = SessionKey(key="c2VjcmV0", algorithm="HmacSHA256", created_ms=0)


def recorded_session_key() -> SessionKey:
    """The key of the recorded dedicated node, from its config topic."""
    for item in golden_records("topics/dedicated-mode.connect-topics.jsonl"):
        if item.record.key == b"session-key":
            key = decode_config_record(item.record)
            assert isinstance(key, SessionKey)
            return key
    raise AssertionError("no session key was recorded")


def signed_exchanges() -> list[RecordedExchange]:
    return [
        exchange
        for exchange in recorded_exchanges("06-dedicated-internal-rest")
        if SIGNATURE_HEADER in exchange.request_headers and "/A/B/" in exchange.path
    ]


@pytest.mark.parametrize("exchange", signed_exchanges(), ids=lambda each: str(each.name))
def test_a_signature_is_the_one_of_java_for_the_same_key_and_body(
    exchange: RecordedExchange,
) -> None:
    body = (exchange.request or "").encode()
    signature = InternalRequestSignature.sign(recorded_session_key(), "HmacSHA256", body)
    recorded = exchange.request_headers
    assert signature.headers() == {
        name: recorded[name] for name in (SIGNATURE_HEADER, ALGORITHM_HEADER)
    }


@pytest.mark.parametrize("algorithm", MAC_ALGORITHMS)
def test_a_signature_is_valid_for_its_bytes_and_its_key_only(algorithm: str) -> None:
    sent = InternalRequestSignature.sign(KEY, algorithm, b"body")
    headers = {name.lower(): value for name, value in sent.headers().items()}
    received = InternalRequestSignature.from_headers(headers)
    assert received == sent
    assert received.is_valid(KEY, b"body")
    assert not received.is_valid(KEY, b"another body")
    other = SessionKey(key="b3RoZXI=", algorithm="HmacSHA256", created_ms=0)
    assert not received.is_valid(other, b"body")


@pytest.mark.parametrize("missing", [SIGNATURE_HEADER, ALGORITHM_HEADER])
def test_one_header_without_the_other_is_no_signature(missing: str) -> None:
    headers = InternalRequestSignature.sign(KEY, "HmacSHA256", b"").headers()
    del headers[missing]
    found = {name.lower(): value for name, value in headers.items()}
    assert InternalRequestSignature.from_headers(found) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("internal-tasks-unknown-algorithm", "Algorithm Nope not available"),
        ("internal-tasks-not-base64", "Illegal base64 character 25"),
    ],
)
def test_an_unreadable_signature_has_the_error_of_java(name: str, text: str) -> None:
    (exchange,) = (each for each in recorded_exchanges("04-supplement") if each.name == name)
    headers = {name.lower(): value for name, value in exchange.request_headers.items()}
    with pytest.raises(BadRequest) as raised:
        InternalRequestSignature.from_headers(headers)
    assert str(raised.value) == text == json.loads(exchange.raw_body or "{}")["message"]


def test_neither_a_signature_nor_its_key_is_printed() -> None:
    signature = InternalRequestSignature.sign(KEY, "HmacSHA256", b"")
    assert repr(signature) == "InternalRequestSignature(algorithm='HmacSHA256')"
