"""What the properties of the target's producer say about its requests. Pure.

    max.request.size      the largest Produce request, as sent
    compression.type      the codec of a batch whose own codec the target refuses; without it, none
    request.timeout.ms    how long the target may take for a Produce request

Other batches keep the codec of the source. Event Hubs has values of its own
(`config.event_hubs_defaults`): there a batch keeps its codec only if `compression.type` names the
codec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from sparkmirror.config.event_hubs_defaults import (
    COMPRESSION_TYPE,
    MAX_REQUEST_SIZE,
    REQUEST_TIMEOUT,
    event_hubs_defaults,
    is_event_hubs,
)
from sparkmirror.errors import ConfigError
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.target_limits import ALL_CODECS, UNLIMITED_BYTES
from sparkmirror.wire.protocol.produce import max_batch_bytes

MAX_PLAIN_TIMEOUT_S = 60.0
"""The longest wait for an answer to a request without producer ids. Epochs end after it, too."""

_CODECS = {codec.config_name: codec for codec in CompressionType}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerLimits:
    """What the target's producer config says about Produce requests and their batches."""

    max_request_size: int = UNLIMITED_BYTES
    codecs: frozenset[CompressionType] = ALL_CODECS
    """The codecs that a batch of the source may keep."""
    fallback_codec: CompressionType = CompressionType.NONE
    request_timeout_s: float | None = None
    """None: as long as a task waits without this key."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read the producer's properties. Raises ConfigError."""
        values = dict(properties) | event_hubs_defaults(properties)
        fallback = _codec(values.get(COMPRESSION_TYPE, ""))
        return cls(
            max_request_size=_size(values.get(MAX_REQUEST_SIZE, "")),
            codecs=(
                frozenset({CompressionType.NONE, fallback})
                if is_event_hubs(properties)
                else ALL_CODECS
            ),
            fallback_codec=fallback,
            request_timeout_s=_seconds(values.get(REQUEST_TIMEOUT, "")),
        )

    def produce_timeout_s(self, lease_timeout_s: float, *, is_idempotent: bool) -> float:
        """Return how long a task waits for the answer to a Produce request.

        Under a producer id a request that is given up can be sent again. Without one it may be
        appended later, so that waiting is better.
        """
        longest_s = lease_timeout_s if is_idempotent else MAX_PLAIN_TIMEOUT_S
        return min(self.request_timeout_s or lease_timeout_s, longest_s)

    def without(self, codec: CompressionType) -> Self:
        """Return the limits after the target has refused a codec."""
        is_fallback = codec is self.fallback_codec
        return replace(
            self,
            codecs=self.codecs - {codec},
            fallback_codec=CompressionType.NONE if is_fallback else self.fallback_codec,
        )

    def max_produce_bytes(self, topic: str, client_id: str, transactional_id: str = "") -> int:
        """Return the largest batch for a remote topic that a request can hold."""
        if self.max_request_size == UNLIMITED_BYTES:
            return UNLIMITED_BYTES
        return max_batch_bytes(
            self.max_request_size, topic, client_id=client_id, transactional_id=transactional_id
        )


def _size(text: str) -> int:
    return min(_whole_number(MAX_REQUEST_SIZE, text), UNLIMITED_BYTES) if text else UNLIMITED_BYTES


def _seconds(text: str) -> float | None:
    """Return a time limit. 0 would let no request end, so it counts as no limit of the user's."""
    return (_whole_number(REQUEST_TIMEOUT, text) / 1000 or None) if text else None


def _whole_number(key: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise ConfigError.of(key, f"{key} {text} is not a whole number")
    return int(text)


def _codec(text: str) -> CompressionType:
    if not text:
        return CompressionType.NONE
    if text.strip() not in _CODECS:
        raise ConfigError.of(
            COMPRESSION_TYPE,
            f"{COMPRESSION_TYPE} {text} is unknown: use one of {', '.join(_CODECS)}",
        )
    return _CODECS[text.strip()]
