"""The `ssl.*` keys of a client or a listener, checked by the rules of Kafka."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError

SECURITY_PROTOCOL = "security.protocol"
ENABLED_PROTOCOLS = "ssl.enabled.protocols"
CIPHER_SUITES = "ssl.cipher.suites"
ENGINE_FACTORY = "ssl.engine.factory.class"
IDENTIFICATION_ALGORITHM = "ssl.endpoint.identification.algorithm"
CLIENT_AUTH = "ssl.client.auth"
KEY_PASSWORD = "ssl.key.password"  # noqa: S105  the name of a setting
_KEYSTORE_KEY = "ssl.keystore.key"
_KEYSTORE_CHAIN = "ssl.keystore.certificate.chain"
_TRUSTSTORE_CERTIFICATES = "ssl.truststore.certificates"
_DEFAULT_ENGINE_FACTORY = "DefaultSslEngineFactory"
_TLS_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """One store: a file, or PEM text in the properties."""

    name: str
    """`keystore` or `truststore`."""
    location: str = ""
    inline_key: str = ""
    """The property that holds the PEM text, if there is no file."""
    inline_pem: str = field(default="", repr=False)
    store_type: str = ""
    password: Password | None = None
    key_password: Password | None = None

    @property
    def source_key(self) -> str:
        """The property that names the store: faults of the store are faults of this property."""
        return self.inline_key or f"ssl.{self.name}.location"

    @property
    def password_key(self) -> str:
        """The property with the store's password."""
        return f"ssl.{self.name}.password"

    @property
    def type_key(self) -> str:
        """The property with the store's type."""
        return f"ssl.{self.name}.type"


@dataclass(frozen=True, slots=True, kw_only=True)
class SslConfig:
    """The settings of TLS contexts. Stores are not read yet."""

    key_store: StoreConfig | None
    trust_store: StoreConfig | None
    """None: the authorities that the system trusts."""
    minimum_version: ssl.TLSVersion
    maximum_version: ssl.TLSVersion
    cipher_suites: tuple[str, ...]
    """Java's names. Empty: OpenSSL's choice."""
    checks_host_name: bool
    client_auth: str

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Parse the keys. Raises ConfigError that names the key."""
        factory = properties.get(ENGINE_FACTORY, "")
        if factory and factory.rpartition(".")[2] != _DEFAULT_ENGINE_FACTORY:
            raise ConfigError.of(
                ENGINE_FACTORY,
                f"{ENGINE_FACTORY} {factory} is a Java class, and none can be loaded: remove it and"
                " name the stores in ssl.keystore.location and ssl.truststore.location",
            )
        lowest, highest = _tls_versions(properties)
        return cls(
            key_store=_key_store(properties),
            trust_store=_trust_store(properties),
            minimum_version=lowest,
            maximum_version=highest,
            cipher_suites=_items(properties.get(CIPHER_SUITES, "")),
            checks_host_name=properties.get(IDENTIFICATION_ALGORITHM, "https").strip() != "",
            client_auth=properties.get(CLIENT_AUTH, "none"),
        )

    @property
    def store_locations(self) -> tuple[str, ...]:
        """The files of the stores."""
        stores = (self.key_store, self.trust_store)
        return tuple(store.location for store in stores if store is not None and store.location)


def _key_store(properties: Mapping[str, str]) -> StoreConfig | None:
    key = properties.get(_KEYSTORE_KEY, "")
    chain = properties.get(_KEYSTORE_CHAIN, "")
    location = properties.get("ssl.keystore.location", "")
    if key and location:
        raise ConfigError.of(
            _KEYSTORE_KEY,
            f"{_KEYSTORE_KEY} and ssl.keystore.location are both set: remove one of them",
        )
    if key and not chain:
        raise ConfigError.of(
            _KEYSTORE_CHAIN,
            f"{_KEYSTORE_CHAIN} is missing: {_KEYSTORE_KEY} needs its certificates",
        )
    if chain and not key:
        raise ConfigError.of(
            _KEYSTORE_KEY, f"{_KEYSTORE_KEY} is missing: {_KEYSTORE_CHAIN} is of no use without it"
        )
    if not key and not location:
        return None
    return StoreConfig(
        name="keystore",
        location=location,
        inline_key=_KEYSTORE_KEY if key else "",
        inline_pem=f"{key}\n{chain}" if key else "",
        store_type=properties.get("ssl.keystore.type", ""),
        password=_password(properties, "ssl.keystore.password"),
        key_password=_password(properties, KEY_PASSWORD),
    )


def _trust_store(properties: Mapping[str, str]) -> StoreConfig | None:
    certificates = properties.get(_TRUSTSTORE_CERTIFICATES, "")
    location = properties.get("ssl.truststore.location", "")
    if certificates and location:
        raise ConfigError.of(
            _TRUSTSTORE_CERTIFICATES,
            f"{_TRUSTSTORE_CERTIFICATES} and ssl.truststore.location are both set:"
            " remove one of them",
        )
    if not certificates and not location:
        return None
    return StoreConfig(
        name="truststore",
        location=location,
        inline_key=_TRUSTSTORE_CERTIFICATES if certificates else "",
        inline_pem=certificates,
        store_type=properties.get("ssl.truststore.type", ""),
        password=_password(properties, "ssl.truststore.password"),
    )


def _password(properties: Mapping[str, str], key: str) -> Password | None:
    value = properties.get(key, "")
    return Password(value) if value else None


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _tls_versions(properties: Mapping[str, str]) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = _items(properties.get(ENABLED_PROTOCOLS, "")) or tuple(_TLS_VERSIONS)
    supported = sorted(_TLS_VERSIONS[name] for name in names if name in _TLS_VERSIONS)
    if not supported:
        raise ConfigError.of(
            ENABLED_PROTOCOLS,
            f"{ENABLED_PROTOCOLS} must hold one of {', '.join(_TLS_VERSIONS)}",
        )
    return supported[0], supported[-1]
