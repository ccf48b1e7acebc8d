"""The `inter.worker.*` keys of a worker: how session keys are made and requests are signed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from sparkmirror.config.definition.value_types import ParsedValue, invalid_value_message
from sparkmirror.errors import ConfigError

KEY_ALGORITHM: Final = "inter.worker.key.generation.algorithm"
KEY_SIZE: Final = "inter.worker.key.size"
KEY_TTL: Final = "inter.worker.key.ttl.ms"
SIGNATURE_ALGORITHM: Final = "inter.worker.signature.algorithm"
VERIFICATION_ALGORITHMS: Final = "inter.worker.verification.algorithms"
MIN_KEY_BITS: Final = 40
"""Java's generators refuse smaller keys."""
_DEFAULT_KEY_BYTES: Final = {
    "hmacmd5": 64,
    "hmacsha1": 64,
    "hmacsha224": 28,
    "hmacsha256": 32,
    "hmacsha384": 48,
    "hmacsha512": 64,
    "hmacsha512/224": 28,
    "hmacsha512/256": 32,
}
"""The size of the keys that Java's generators make by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterWorkerSettings:
    """How this worker signs its requests to others, and which signatures it accepts."""

    key_algorithm: str = "HmacSHA256"
    key_bits: int | None = None
    """None: the default of the algorithm."""
    key_ttl_ms: int = 3_600_000
    """After this time the leader writes another key. 0: never."""
    signature_algorithm: str = "HmacSHA256"
    verification_algorithms: tuple[str, ...] = ("HmacSHA256",)

    @classmethod
    def from_config(cls, config: Mapping[str, ParsedValue]) -> Self:
        """Read the parsed config of a worker. Raises ConfigError."""
        size, ttl = config.get(KEY_SIZE), config[KEY_TTL]
        algorithms = config[VERIFICATION_ALGORITHMS]
        assert isinstance(ttl, int)
        assert isinstance(algorithms, tuple)
        settings = cls(
            key_algorithm=str(config[KEY_ALGORITHM]),
            key_bits=size if isinstance(size, int) else None,
            key_ttl_ms=ttl,
            signature_algorithm=str(config[SIGNATURE_ALGORITHM]),
            verification_algorithms=algorithms,
        )
        settings._check()
        return settings

    def _check(self) -> None:
        if self.signature_algorithm not in self.verification_algorithms:
            reason = f"Signature algorithm must be present in {VERIFICATION_ALGORITHMS} list"
            raise ConfigError.of(
                SIGNATURE_ALGORITHM,
                invalid_value_message(SIGNATURE_ALGORITHM, self.signature_algorithm, reason),
            )
        if self.key_bits is not None and self.key_bits < MIN_KEY_BITS:
            reason = f"Key length must be at least {MIN_KEY_BITS} bits"
            raise ConfigError.of(KEY_SIZE, invalid_value_message(KEY_SIZE, self.key_bits, reason))

    @property
    def key_bytes(self) -> int:
        """The size of a new session key."""
        if self.key_bits is None:
            return _DEFAULT_KEY_BYTES[self.key_algorithm.lower()]
        return (self.key_bits + 7) // 8
