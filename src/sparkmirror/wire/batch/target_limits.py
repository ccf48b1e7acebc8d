"""The limits of the target topic, its broker and our producer, which decide the lane of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkmirror.wire.batch.compression import CompressionType

ALL_CODECS = frozenset(CompressionType)
UNLIMITED_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """The limits of the target topic.

    `max_message_bytes`    its max.message.bytes: the largest batch, header included, as sent
    `max_produce_bytes`    the largest batch that fits into one Produce request, because of the
                           max.request.size of the target's producer
    `log_append_time`      its message.timestamp.type: whether the target overwrites timestamps
    `codecs`               what its broker supports
    `fallback_codec`       replaces a codec of the source that the broker does not support
    `max_batch_bytes`      the smaller of the first two
    """

    max_message_bytes: int = 1_048_588
    max_produce_bytes: int = UNLIMITED_BYTES
    log_append_time: bool = False
    codecs: frozenset[CompressionType] = ALL_CODECS
    fallback_codec: CompressionType = CompressionType.LZ4
    max_batch_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        if self.fallback_codec not in self.codecs:
            raise ValueError(
                f"the target does not support the fallback codec {self.fallback_codec.config_name}"
            )
        smaller = min(self.max_message_bytes, self.max_produce_bytes)
        object.__setattr__(self, "max_batch_bytes", smaller)

    def codec_for(self, number: int) -> CompressionType:
        """Return the codec for the target, given the codec id of the source."""
        return CompressionType.for_id(number) if number in self.codecs else self.fallback_codec

    @property
    def is_bound_by_request(self) -> bool:
        """Whether max.request.size allows less than the topic."""
        return self.max_produce_bytes < self.max_message_bytes
