"""The limits of the target topic and its broker, which decide the lane of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.wire.batch.compression import CompressionType

ALL_CODECS = frozenset(CompressionType)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """The limits of the target topic.

    `max_message_bytes`  its max.message.bytes: the largest batch, header included, as sent
    `log_append_time`    its message.timestamp.type: whether the target overwrites timestamps
    `codecs`             what its broker supports
    `fallback_codec`     replaces a codec of the source that the broker does not support
    """

    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    codecs: frozenset[CompressionType] = ALL_CODECS
    fallback_codec: CompressionType = CompressionType.LZ4

    def __post_init__(self) -> None:
        if self.fallback_codec not in self.codecs:
            raise ValueError(
                f"the target does not support the fallback codec {self.fallback_codec.config_name}"
            )

    def codec_for(self, number: int) -> CompressionType:
        """Return the codec for the target, given the codec id of the source."""
        return CompressionType.for_id(number) if number in self.codecs else self.fallback_codec
