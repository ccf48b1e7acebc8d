"""What the target topic and its broker will take: the facts that choose a batch's lane.

Read from the topic's configuration and the broker's API versions by others; a plain value here.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.wire.batch.compression import CompressionType

ALL_CODECS = frozenset(CompressionType)
WITHOUT_ZSTD = ALL_CODECS - {CompressionType.ZSTD}
"""What brokers before 2.1 take, and any broker by Produce requests before version 7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """The rules of the target topic.

    `max_message_bytes`  its max.message.bytes: the largest batch, header included, as sent
    `log_append_time`    its message.timestamp.type: whether the target restamps what it stores
    `codecs`             what its broker can read
    `substitute`         what to compress with where the source's codec is not among them
    """

    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    codecs: frozenset[CompressionType] = ALL_CODECS
    fallback_codec: CompressionType = CompressionType.LZ4

    def __post_init__(self) -> None:
        if self.fallback_codec not in self.codecs:
            raise ValueError(
                f"the target does not take the substitute {self.fallback_codec.config_name}"
            )

    def codec_for(self, number: int) -> CompressionType:
        """Choose the codec to write where the source used this one."""
        return CompressionType.for_id(number) if number in self.codecs else self.fallback_codec
