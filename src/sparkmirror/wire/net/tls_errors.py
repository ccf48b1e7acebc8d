"""What an operator can do about a failed TLS handshake: the properties to look at."""

from __future__ import annotations

import ssl
from typing import Final

CHECK_CERTIFICATES: Final = (
    "check the certificates and the stores on both sides"
    " (ssl.truststore.location, ssl.keystore.location)"
)
_CHECK_TRUST_STORE: Final = (
    "check that the trust store holds the certificate of the authority that signed it"
    " (ssl.truststore.location or ssl.truststore.certificates)"
)
_CHECK_CLOCK: Final = "check the clock of this computer; if it is right, renew the certificate"
_CHECK_HOST: Final = (
    "check that the certificate names the host of bootstrap.servers and of the broker's"
    " advertised.listeners; an empty ssl.endpoint.identification.algorithm accepts every name"
)
_CHECK_KEY_STORE: Final = (
    "check that the key store holds a key with a certificate that the broker trusts"
    " (ssl.keystore.location, or ssl.keystore.key with ssl.keystore.certificate.chain)"
)
_CHECK_PROTOCOLS: Final = (
    "check that both sides share a TLS version and a cipher"
    " (ssl.enabled.protocols, ssl.cipher.suites)"
)

_ADVICE_BY_VERIFY_CODE: Final = {
    9: _CHECK_CLOCK,  # not valid yet
    10: _CHECK_CLOCK,  # expired
    18: _CHECK_TRUST_STORE,  # self-signed
    19: _CHECK_TRUST_STORE,  # self-signed in the chain
    20: _CHECK_TRUST_STORE,  # issuer not found
    21: _CHECK_TRUST_STORE,  # first certificate not verified
    62: _CHECK_HOST,  # another host name
    64: _CHECK_HOST,  # another IP address
}
"""By the error numbers of OpenSSL's X509_V_ERR_*."""

_ADVICE_BY_REASON: Final = {
    "CERTIFICATE_REQUIRED": _CHECK_KEY_STORE,
    "BAD_CERTIFICATE": _CHECK_KEY_STORE,
    "CERTIFICATE_EXPIRED": _CHECK_KEY_STORE,
    "CERTIFICATE_REVOKED": _CHECK_KEY_STORE,
    "CERTIFICATE_UNKNOWN": _CHECK_KEY_STORE,
    "UNKNOWN_CA": _CHECK_KEY_STORE,
    "PROTOCOL_VERSION": _CHECK_PROTOCOLS,
    "UNSUPPORTED_PROTOCOL": _CHECK_PROTOCOLS,
    "HANDSHAKE_FAILURE": _CHECK_PROTOCOLS,
    "NO_CIPHERS_AVAILABLE": _CHECK_PROTOCOLS,
}
"""By the end of the reason: OpenSSL puts the TLS version before the name of an alert."""


def tls_advice(error: ssl.SSLError) -> str:
    """Return what to check after an error of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _ADVICE_BY_VERIFY_CODE.get(getattr(error, "verify_code", 0), CHECK_CERTIFICATES)
    reason = error.reason or ""
    for end, advice in _ADVICE_BY_REASON.items():
        if reason.endswith(end):
            return advice
    return CHECK_CERTIFICATES
