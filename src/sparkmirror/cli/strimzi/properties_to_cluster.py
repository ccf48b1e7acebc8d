"""The properties of a cluster as a cluster of a KafkaMirrorMaker2, without any secret. Pure.

A value that is a file of a Secret, as `sparkmirror import strimzi` writes it, names that Secret.
Any other store or password becomes a Secret that the operator has to create; a remark says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from sparkmirror.cli.strimzi.kubernetes_secret_files import SecretKey
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.config.secrets.jaas import LoginModule, parse_login_module
from sparkmirror.config.secrets.redaction import is_secret
from sparkmirror.errors import ConfigError

_PASSWORD_TYPES: Final = {
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram-sha-256",
    "SCRAM-SHA-512": "scram-sha-512",
}
_TRUST_STORE: Final = "ssl.truststore."
_KEY_STORE: Final = "ssl.keystore."
_JAAS: Final = "sasl.jaas.config"
_READ_KEYS: Final = frozenset({"bootstrap.servers", "security.protocol"})
_ALLOWED_KEYS: Final = frozenset(
    {
        *("ssl.endpoint.identification.algorithm", "ssl.cipher.suites"),
        *("ssl.protocol", "ssl.enabled.protocols"),
    }
)
"""Keys of TLS that Strimzi accepts in `config`."""
_REFUSED_PREFIXES: Final = ("ssl.", "sasl.", "security.", "listeners", "rest.", "plugin.path")
"""What Strimzi refuses in `config`."""
CLIENT_PREFIXES: Final = ("admin.", "consumer.", "producer.")
_PLACEHOLDER = re.compile(r"\$\{dir:([^:}]+):([^}]+)\}")


class ClusterExport:
    """Makes the parts of one cluster. Adds to `remarks` what is left out or to be created."""

    def __init__(
        self,
        alias: str,
        properties: Mapping[str, str],
        secrets_directory: str,
        remarks: list[StrimziRemark],
    ) -> None:
        self._alias = alias
        self._properties = properties
        self._directory = PurePosixPath(secrets_directory)
        self._remarks = remarks

    def fields(self) -> dict[str, Any]:
        """Return alias, servers, TLS, login and settings."""
        protocol = self._properties.get("security.protocol", "PLAINTEXT").upper()
        fields: dict[str, Any] = {
            "alias": self._alias,
            "bootstrapServers": self._properties.get("bootstrap.servers", ""),
        }
        if protocol in {"SSL", "SASL_SSL"}:
            fields["tls"] = {"trustedCertificates": self._trusted_certificates()}
        authentication = self._login() if protocol.startswith("SASL_") else self._client_key()
        if authentication:
            fields["authentication"] = authentication
        if config := self._config():
            fields["config"] = config
        return fields

    def _remark(self, key: str, text: str) -> None:
        self._remarks.append(StrimziRemark(f"{self._alias}.{key}", text))

    def _needed_secret(self, key: str, part: str, names: str) -> str:
        """Return the name of a Secret that is to be created."""
        name = f"{self._alias}-{part}"
        self._remark(key, f"create the Secret {name} with {names}")
        return name

    def _trusted_certificates(self) -> list[dict[str, str]]:
        text = self._properties.get(f"{_TRUST_STORE}certificates", "")
        found = [_secret_key(match) for match in _PLACEHOLDER.finditer(text)]
        location = self._properties.get(f"{_TRUST_STORE}location")
        if location is not None and (file := self._secret_file(location)):
            found = [file]
        if found:
            return [{"secretName": one.secret, "certificate": one.key} for one in found]
        if text or location is not None:
            key = f"{_TRUST_STORE}{'certificates' if text else 'location'}"
            name = self._needed_secret(
                key, "ca", "the certificates of this store as ca.crt, in PEM"
            )
            return [{"secretName": name, "certificate": "ca.crt"}]
        return []

    def _secret_file(self, location: str) -> SecretKey | None:
        """Return the key of a Secret whose file this is."""
        path = PurePosixPath(location)
        if path.parent.parent != self._directory:
            return None
        return SecretKey(path.parent.name, path.name)

    def _client_key(self) -> dict[str, Any] | None:
        """Return the client certificate of type `tls`; None if there is none."""
        chain = _PLACEHOLDER.fullmatch(self._properties.get(f"{_KEY_STORE}certificate.chain", ""))
        key = _PLACEHOLDER.fullmatch(self._properties.get(f"{_KEY_STORE}key", ""))
        if chain and key and _secret_key(chain).secret == _secret_key(key).secret:
            secret, certificate, name = *_secret_key(chain), _secret_key(key).key
        elif any(one.startswith(_KEY_STORE) for one in self._properties):
            text = "the certificate and the key of this store as user.crt and user.key, in PEM"
            secret = self._needed_secret(f"{_KEY_STORE}location", "user", text)
            certificate, name = "user.crt", "user.key"
        else:
            return None
        named = {"secretName": secret, "certificate": certificate, "key": name}
        return {"type": "tls", "certificateAndKey": named}

    def _login(self) -> dict[str, Any]:
        mechanism = self._properties.get("sasl.mechanism", "GSSAPI")
        module = self._login_module()
        if mechanism not in _PASSWORD_TYPES or module is None:
            return self._custom_login(module)
        found = _PLACEHOLDER.fullmatch(module.options.get("password", ""))
        if found:
            password = _secret_key(found)
        else:
            text = "the password of this login as password"
            password = SecretKey(self._needed_secret(_JAAS, "login", text), "password")
        return {
            "type": _PASSWORD_TYPES[mechanism],
            "username": module.options.get("username", ""),
            "passwordSecret": {"secretName": password.secret, "password": password.key},
        }

    def _login_module(self) -> LoginModule | None:
        try:
            return parse_login_module(self._properties.get(_JAAS, ""))[0]
        except ConfigError:
            return None

    def _custom_login(self, module: LoginModule | None) -> dict[str, Any]:
        """Return a login of type `custom`, with its JAAS line only if that has no option at all."""
        config = {
            key: value
            for key, value in self._properties.items()
            if key.startswith("sasl.") and not is_secret(key)
        }
        if module is not None and not module.options:
            config[_JAAS] = self._properties[_JAAS]
        elif _JAAS in self._properties:
            text = (
                "its options may be secrets: write it into authentication.config with placeholders"
            )
            self._remark(_JAAS, text)
        return {"type": "custom", "sasl": True, "config": config}

    def _config(self) -> dict[str, str]:
        config = {}
        for key, value in self._properties.items():
            if key in _READ_KEYS or key.startswith((_TRUST_STORE, _KEY_STORE, "sasl.")):
                continue
            if key.startswith(CLIENT_PREFIXES):
                continue  # the connectors have it
            if is_secret(key):
                self._remark(key, "is a secret; Strimzi has no place for it")
            elif key.startswith(_REFUSED_PREFIXES) and key not in _ALLOWED_KEYS:
                self._remark(key, "Strimzi refuses this key")
            else:
                config[key] = value
        return config


def _secret_key(found: re.Match[str]) -> SecretKey:
    """Return the Secret of a placeholder: the directory has its name."""
    return SecretKey(PurePosixPath(found[1]).name, found[2])
