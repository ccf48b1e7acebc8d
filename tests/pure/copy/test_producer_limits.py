"""What the properties of the target's producer say about requests and codecs."""

from __future__ import annotations

import pytest

from sparkmirror.copy.producer_limits import ProducerLimits
from sparkmirror.errors import ConfigError
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.target_limits import ALL_CODECS, UNLIMITED_BYTES, TargetLimits

NONE, GZIP, LZ4, ZSTD = (
    CompressionType.NONE,
    CompressionType.GZIP,
    CompressionType.LZ4,
    CompressionType.ZSTD,
)
EVENT_HUBS = {"bootstrap.servers": "my.servicebus.windows.net:9093"}


def test_without_keys_nothing_is_limited() -> None:
    limits = ProducerLimits.from_properties({"bootstrap.servers": "a:9092"})
    assert limits == ProducerLimits(
        max_request_size=UNLIMITED_BYTES, codecs=ALL_CODECS, fallback_codec=NONE
    )
    assert limits.max_produce_bytes("t", "client") == UNLIMITED_BYTES


def test_the_keys_are_read() -> None:
    limits = ProducerLimits.from_properties(
        {"max.request.size": "5000", "compression.type": "gzip", "request.timeout.ms": "2500"}
    )
    assert limits.request_timeout_s == 2.5
    assert (limits.max_request_size, limits.fallback_codec) == (5000, GZIP)
    assert limits.codecs == ALL_CODECS, "a batch keeps the codec of the source"
    assert 4000 < limits.max_produce_bytes("t", "client") < 5000


def test_event_hubs_has_values_of_its_own() -> None:
    limits = ProducerLimits.from_properties(EVENT_HUBS)
    assert (limits.max_request_size, limits.codecs) == (1_000_000, frozenset({NONE}))
    assert limits.request_timeout_s == 60.0
    chosen = ProducerLimits.from_properties(
        EVENT_HUBS | {"max.request.size": "900000", "compression.type": "gzip"}
    )
    assert (chosen.max_request_size, chosen.codecs) == (900_000, frozenset({NONE, GZIP}))


@pytest.mark.parametrize(
    ("text", "idempotent_s", "plain_s"),
    [("", 15.0, 15.0), ("5000", 5.0, 5.0), ("30000", 15.0, 30.0), ("2147483647", 15.0, 60.0)],
)
def test_a_request_without_a_producer_id_may_take_longer_than_a_lease(
    text: str, idempotent_s: float, plain_s: float
) -> None:
    limits = ProducerLimits.from_properties({"request.timeout.ms": text} if text else {})
    assert limits.produce_timeout_s(15.0, is_idempotent=True) == idempotent_s
    assert limits.produce_timeout_s(15.0, is_idempotent=False) == plain_s


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max.request.size", "1 MB"),
        ("max.request.size", "-1"),
        ("compression.type", "rar"),
        ("request.timeout.ms", "1 s"),
    ],
)
def test_a_malformed_value_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} {value} is"):
        ProducerLimits.from_properties({key: value})


def test_a_refused_codec_is_avoided_and_never_the_fallback() -> None:
    limits = ProducerLimits(fallback_codec=GZIP).without(LZ4)
    assert (LZ4 in limits.codecs, limits.fallback_codec) == (False, GZIP)
    assert limits.without(GZIP).fallback_codec is NONE
    target = TargetLimits(codecs=limits.codecs, fallback_codec=limits.fallback_codec)
    assert (target.codec_for(LZ4), target.codec_for(ZSTD)) == (GZIP, ZSTD)
