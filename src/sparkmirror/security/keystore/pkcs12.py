"""Reads PKCS12 stores: what `keytool` writes since Java 9, and OpenSSL, and most other programs.

    PFX: version, the safes, and a MAC over them
    a safe: bags, in the clear or encrypted
    a bag: a private key, a certificate, or something that TLS does not use

A private key belongs to the certificate with the same local key id, and its chain are the
certificates that signed each other. All certificates are trusted if the store is a trust store:
Java trusts only those that Java itself has marked, which OpenSSL does not do.

Without a password, the MAC is not checked and certificates in the clear are read, as in Java.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkmirror.security.keystore.certificate_chain import follow_issuers
from sparkmirror.security.keystore.der import OCTET_STRING, Asn1Value, context_tag, read_asn1
from sparkmirror.security.keystore.entries import (
    KeyEncoding,
    KeyStore,
    KeyStoreError,
    PrivateKeyEntry,
    StoreType,
    WrongPassword,
)
from sparkmirror.security.keystore.pbe import EncryptionAlgorithm, check_iterations, decrypt
from sparkmirror.security.keystore.pkcs12_kdf import KeyPurpose, bmp_password, derive_key

_DATA = "1.2.840.113549.1.7.1"
_ENCRYPTED_DATA = "1.2.840.113549.1.7.6"
_BAG = "1.2.840.113549.1.12.10.1."
_KEY_BAG, _SHROUDED_KEY_BAG, _CERTIFICATE_BAG = f"{_BAG}1", f"{_BAG}2", f"{_BAG}3"
_SAFE_CONTENTS_BAG = f"{_BAG}6"
_X509_CERTIFICATE = "1.2.840.113549.1.9.22.1"
_FRIENDLY_NAME = "1.2.840.113549.1.9.20"
_LOCAL_KEY_ID = "1.2.840.113549.1.9.21"
_MAC_HASHES = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
    "2.16.840.1.101.3.4.2.4": "sha224",
}
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bag:
    kind: str
    value: Asn1Value
    attributes: dict[str, bytes]
    """The content of the first value of each attribute."""


def read_pkcs12(content: bytes, password: str | None) -> KeyStore:
    """Return the entries. Raises WrongPassword, and KeyStoreError if the store is damaged."""
    parts = read_asn1(content).sequence(at_least=2)
    safes = _content(parts[1], _DATA).octets()
    if password and len(parts) > 2:
        _check_mac(parts[2], safes, password)
    bags = [
        bag
        for safe in read_asn1(safes).sequence()
        for bag in _bags(_safe_contents(safe, password or ""), _MAX_DEPTH)
    ]
    certificates = {
        _certificate(bag.value): bag for bag in bags if bag.kind == _CERTIFICATE_BAG
    }  # each certificate once
    return KeyStore(
        store_type=StoreType.PKCS12,
        keys=tuple(
            _key_entry(bag, certificates)
            for bag in bags
            if bag.kind in (_KEY_BAG, _SHROUDED_KEY_BAG)
        ),
        trusted_certificates=tuple(certificates),
    )


def _content(info: Asn1Value, kind: str) -> Asn1Value:
    """The content of a ContentInfo of this kind."""
    parts = info.sequence(at_least=2)
    if parts[0].object_identifier() != kind:
        raise KeyStoreError("its contents are signed or encrypted in an unknown way")
    return parts[1].expect(context_tag(0)).only_child()


def _check_mac(mac_data: Asn1Value, safes: bytes, password: str) -> None:
    mac, salt, *rest = mac_data.sequence(at_least=2)
    algorithm, digest = mac.sequence(at_least=2)[:2]
    identifier = EncryptionAlgorithm.read(algorithm).identifier
    if identifier not in _MAC_HASHES:
        raise KeyStoreError(f"the MAC algorithm {identifier} is not supported")
    hash_name = _MAC_HASHES[identifier]
    key = derive_key(
        hash_name,
        bmp_password(password),
        salt.expect(OCTET_STRING).content,
        check_iterations(rest[0].integer() if rest else 1),
        KeyPurpose.MAC,
        hashlib.new(hash_name, usedforsecurity=False).digest_size,
    )
    if not hmac.compare_digest(hmac.digest(key, safes, hash_name), digest.octets()):
        raise WrongPassword("the password is wrong, or the store is damaged")


def _safe_contents(safe: Asn1Value, password: str) -> Asn1Value:
    kind = safe.sequence(at_least=1)[0].object_identifier()
    if kind == _DATA:
        return read_asn1(_content(safe, _DATA).octets())
    encrypted = _content(safe, _ENCRYPTED_DATA).sequence(at_least=2)[1].sequence(at_least=3)
    plain = decrypt(EncryptionAlgorithm.read(encrypted[1]), encrypted[2].octets(), password)
    try:
        contents = read_asn1(plain)
        contents.sequence()
    except KeyStoreError:
        raise WrongPassword("the password does not open it") from None
    return contents


def _bags(contents: Asn1Value, depth: int) -> Iterator[_Bag]:
    if depth == 0:
        raise KeyStoreError("its contents are nested too deeply")
    for bag in contents.sequence():
        parts = bag.sequence(at_least=2)
        kind = parts[0].object_identifier()
        value = parts[1].expect(context_tag(0)).only_child()
        if kind == _SAFE_CONTENTS_BAG:
            yield from _bags(value, depth - 1)
        else:
            yield _Bag(kind=kind, value=value, attributes=_attributes(parts[2:]))


def _attributes(sets: Sequence[Asn1Value]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for attribute in sets[0].children() if sets else ():
        name, values = attribute.sequence(at_least=2)[:2]
        for value in values.children()[:1]:
            found[name.object_identifier()] = value.octets()
    return found


def _certificate(value: Asn1Value) -> bytes:
    kind, content = value.sequence(at_least=2)[:2]
    if kind.object_identifier() != _X509_CERTIFICATE:
        raise KeyStoreError("a certificate is not of the kind X.509")
    return content.expect(context_tag(0)).only_child().octets()


def _key_entry(bag: _Bag, certificates: dict[bytes, _Bag]) -> PrivateKeyEntry:
    key_id = bag.attributes.get(_LOCAL_KEY_ID)
    own = [
        certificate
        for certificate, other in certificates.items()
        if other.attributes.get(_LOCAL_KEY_ID) == key_id
    ]
    is_encrypted = bag.kind == _SHROUDED_KEY_BAG
    alias = bag.attributes.get(_FRIENDLY_NAME, b"")
    return PrivateKeyEntry(
        alias=alias.decode("utf-16-be", errors="replace").lower(),
        encoded_key=bag.value.encoded,
        encoding=KeyEncoding.ENCRYPTED_PKCS8 if is_encrypted else KeyEncoding.PKCS8,
        certificate_chain=follow_issuers(own[0], [*certificates]) if own else (),
    )
