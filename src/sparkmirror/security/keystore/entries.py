"""The entries of a store, and the errors of reading one. Values; keys may still be encrypted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum

from sparkmirror.errors import MirrorError


class KeyStoreError(MirrorError):
    """A store cannot be read. The text says why; it contains no password."""


class WrongPassword(KeyStoreError):
    """The password does not open the store or the key, or there is none."""


class StoreType(StrEnum):
    """The forms of a store, by their names in `ssl.keystore.type`."""

    JKS = "JKS"
    JCEKS = "JCEKS"
    PKCS12 = "PKCS12"
    PEM = "PEM"


class KeyEncoding(Enum):
    """How a private key is encoded."""

    PKCS8 = "PrivateKeyInfo, as DER"
    ENCRYPTED_PKCS8 = "EncryptedPrivateKeyInfo, as DER"
    TRADITIONAL_PEM = "a PEM block of one key algorithm, perhaps encrypted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateKeyEntry:
    """A private key and its certificates, each as DER; the first certificate is the key's own."""

    alias: str
    encoded_key: bytes = field(repr=False)
    encoding: KeyEncoding
    certificate_chain: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStore:
    """The entries of one store that TLS can use, in the order of the file."""

    store_type: StoreType
    keys: tuple[PrivateKeyEntry, ...] = ()
    trusted_certificates: tuple[bytes, ...] = field(default=(), repr=False)
    """The certificates that a client trusts if this is its trust store, as DER."""
