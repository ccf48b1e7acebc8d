"""Reads the stores that the `ssl.*` keys name. Faults name the property, never a secret."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.config.secrets.file_permissions import exposure_of
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.warn_once import warn_once
from sparkmirror.errors import ConfigError
from sparkmirror.security.keystore.entries import (
    KeyStore,
    KeyStoreError,
    PrivateKeyEntry,
    StoreType,
    WrongPassword,
)
from sparkmirror.security.keystore.key_choice import in_java_order
from sparkmirror.security.keystore.keystore import read_store
from sparkmirror.security.keystore.pem import read_pem
from sparkmirror.security.tls.ssl_config import KEY_PASSWORD, StoreConfig

log = logging.getLogger(__name__)

MAX_STORE_BYTES = 1 << 24
_CHUNK_BYTES = 1 << 16
_SAME_IN_JAVA = frozenset({StoreType.JKS, StoreType.PKCS12})
"""Java reads a store of one of these types under the name of the other, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKey:
    """A private key, as PKCS#8 in DER, and its certificates, as DER, the key's own first."""

    private_key: bytes = field(repr=False)
    algorithm: str
    """The object identifier of the key's algorithm."""
    certificate_chain: tuple[bytes, ...] = field(repr=False)


def read_trusted_certificates(config: StoreConfig) -> tuple[bytes, ...]:
    """Return the certificates of a trust store, as DER. Raises ConfigError."""
    store = _read(config)
    if not store.trusted_certificates:
        raise store_fault(config, "holds no certificate")
    return store.trusted_certificates


def read_own_certificates(config: StoreConfig) -> tuple[bytes, ...]:
    """Return the certificates of the keys of a key store, as DER; opens no key.

    Raises ConfigError.
    """
    return tuple(one for key in _read(config).keys for one in key.certificate_chain)


def read_own_keys(config: StoreConfig) -> tuple[OwnKey, ...]:
    """Return the keys of a key store, the one to prefer first; one per key algorithm.

    Raises ConfigError, also if the password does not open one of the keys.
    """
    store = _read(config)
    if not store.keys:
        raise store_fault(config, "holds no private key")
    if config.location and (exposure := exposure_of(Path(config.location))):
        warn_once(log, f"{config.source_key}: {exposure}")
    chosen: dict[str, OwnKey] = {}
    for entry in in_java_order(store.keys):
        key = _open(entry, config, store.store_type)
        chosen.setdefault(key.algorithm, key)
    return tuple(chosen.values())


def _open(entry: PrivateKeyEntry, config: StoreConfig, store_type: StoreType) -> OwnKey:
    # The library for keys is slow to import: clients without a key do without it.
    from sparkmirror.security.keystore.private_key import key_algorithm, open_private_key

    if not entry.certificate_chain:
        raise store_fault(config, "holds a private key without its certificate")
    # A PEM store has no password of its own, as in Kafka.
    store_password = None if store_type is StoreType.PEM else config.password
    password = config.key_password or store_password
    try:
        private_key = open_private_key(entry, _value(password))
        algorithm = key_algorithm(private_key)
    except WrongPassword:
        raise _wrong_key_password(config, entry, password) from None
    except KeyStoreError as error:
        raise store_fault(config, f"cannot be used: {error}") from None
    return OwnKey(
        private_key=private_key,
        algorithm=algorithm,
        certificate_chain=entry.certificate_chain,
    )


def _wrong_key_password(
    config: StoreConfig, entry: PrivateKeyEntry, password: Password | None
) -> ConfigError:
    place = f"the private key {entry.alias} of {config.location or config.source_key}"
    if password is None:
        return ConfigError.of(KEY_PASSWORD, f"{KEY_PASSWORD} is missing: {place} is encrypted")
    if config.key_password is None:
        return ConfigError.of(
            KEY_PASSWORD,
            f"{KEY_PASSWORD} is missing: {config.password_key} opens the store,"
            f" but it does not open {place}",
        )
    return ConfigError.of(KEY_PASSWORD, f"{KEY_PASSWORD} does not open {place}")


def _read(config: StoreConfig) -> KeyStore:
    try:
        if config.inline_key:
            return read_pem(config.inline_pem.encode("utf-8"))
        store = read_store(_read_file(config), _value(config.password))
    except WrongPassword as error:
        key = config.password_key
        if config.password is None:
            raise ConfigError.of(key, f"{key} is missing: {config.location} is encrypted") from None
        raise ConfigError.of(key, f"{key} does not open {config.location}: {error}") from None
    except KeyStoreError as error:
        raise store_fault(config, f"cannot be used: {error}") from None
    _compare_type(config, store.store_type)
    return store


def _read_file(config: StoreConfig) -> bytes:
    try:
        with Path(config.location).open("rb") as file:
            content = bytearray()
            while len(content) <= MAX_STORE_BYTES and (chunk := file.read(_CHUNK_BYTES)):
                content += chunk
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise store_fault(config, f"cannot be read: {reason}") from error
    if len(content) > MAX_STORE_BYTES:
        raise store_fault(config, "is larger than any store: it has over 16 MiB")
    return bytes(content)


def _compare_type(config: StoreConfig, found: StoreType) -> None:
    written = config.store_type.upper()
    if not written or written == found or {written, found} <= _SAME_IN_JAVA:
        return
    warn_once(
        log,
        f"{config.type_key} is {config.store_type}, but {config.location} is a {found} store:"
        " the content decides",
    )


def store_fault(config: StoreConfig, problem: str) -> ConfigError:
    """Return the fault of the property that names the store."""
    key = config.source_key
    place = f"{key}: {config.location}" if config.location else key
    return ConfigError.of(key, f"{place} {problem}")


def _value(password: Password | None) -> str | None:
    return None if password is None else password.value
