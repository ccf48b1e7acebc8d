"""`ssl.cipher.suites`: Java's names of cipher suites, which are IANA's, and OpenSSL's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TLS_1_3_SUITES = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"}
)
_SIGNALLING = frozenset({"TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_FALLBACK_SCSV"})
_OPENSSL_CIPHERS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
_GCM = ("AES_256_GCM_SHA384", "AES_128_GCM_SHA256")
_SHA1 = ("AES_256_CBC_SHA", "AES_128_CBC_SHA")
_SHA256 = ("AES_256_CBC_SHA256", "AES_128_CBC_SHA256")
_ECDHE = (*_GCM, "CHACHA20_POLY1305_SHA256", "AES_256_CBC_SHA384", "AES_128_CBC_SHA256", *_SHA1)
_SUITES = {
    ("ECDHE_ECDSA", "ECDHE-ECDSA-"): _ECDHE,
    ("ECDHE_RSA", "ECDHE-RSA-"): _ECDHE,
    ("DHE_RSA", "DHE-RSA-"): (*_GCM, "CHACHA20_POLY1305_SHA256", *_SHA256, *_SHA1),
    ("DHE_DSS", "DHE-DSS-"): (*_GCM, *_SHA256, *_SHA1),
    ("RSA", ""): (*_GCM, *_SHA256, *_SHA1),
}
"""Key exchange in both spellings, and its ciphers."""
OPENSSL_NAMES = {
    f"TLS_{exchange}_WITH_{cipher}": prefix + _OPENSSL_CIPHERS[cipher]
    for (exchange, prefix), ciphers in _SUITES.items()
    for cipher in ciphers
}
"""The suites of TLS 1.2 that Java 17 supports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CipherSuites:
    """The suites of a setting, by TLS version. `unknown` have no name in OpenSSL."""

    tls_1_2: tuple[str, ...]
    """OpenSSL's names."""
    tls_1_3: frozenset[str]
    unknown: tuple[str, ...]

    @property
    def limits_tls_1_3(self) -> bool:
        """Whether some suites of TLS 1.3 are allowed and others are not."""
        return bool(self.tls_1_3) and self.tls_1_3 != TLS_1_3_SUITES


def parse_cipher_suites(names: Sequence[str]) -> CipherSuites:
    """Sort the names. Old names begin with `SSL_` instead of `TLS_`."""
    plain = [f"TLS_{name[4:]}" if name.startswith("SSL_") else name for name in names]
    return CipherSuites(
        tls_1_2=tuple(OPENSSL_NAMES[name] for name in plain if name in OPENSSL_NAMES),
        tls_1_3=frozenset(plain) & TLS_1_3_SUITES,
        unknown=tuple(
            name
            for name in plain
            if name not in OPENSSL_NAMES and name not in TLS_1_3_SUITES | _SIGNALLING
        ),
    )
