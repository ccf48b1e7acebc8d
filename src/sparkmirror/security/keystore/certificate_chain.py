"""Puts certificates into the order of a chain, by the names of subject and issuer."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.security.keystore.der import context_tag, read_asn1

_MAX_CHAIN = 32


def follow_issuers(certificate: bytes, others: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the certificate, the one that signed it, and so on. All are DER.

    Raises KeyStoreError if one is no certificate.
    """
    by_subject: dict[bytes, bytes] = {}
    for other in others:
        by_subject.setdefault(issuer_and_subject(other)[1], other)
    chain = [certificate]
    while len(chain) < _MAX_CHAIN:
        issuer, subject = issuer_and_subject(chain[-1])
        signer = by_subject.get(issuer)
        if issuer == subject or signer is None or signer in chain:
            break
        chain.append(signer)
    return tuple(chain)


def issuer_and_subject(certificate: bytes) -> tuple[bytes, bytes]:
    """Return both names as DER. Raises KeyStoreError if this is no certificate."""
    # Version (if not 1), serial number, algorithm, issuer, validity, subject, public key.
    signed = read_asn1(certificate).sequence(at_least=1)[0].sequence(at_least=6)
    names = signed[1:] if signed[0].tag == context_tag(0) else signed
    return names[2].encoded, names[4].encoded
