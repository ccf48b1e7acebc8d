"""The login of a cluster as the authentication of a KafkaMirrorMaker2, without secrets. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sparkmirror.cli.strimzi.jaas_line import jaas_line
from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.properties_to_resource.cluster_settings import (
    ClusterSettings,
    WrittenSetting,
)
from sparkmirror.cli.strimzi.properties_to_resource.pod_variables import PodVariables
from sparkmirror.config.secrets.jaas import (
    LOGIN_MODULES,
    PUBLIC_OPTIONS,
    SASL_JAAS_CONFIG,
    LoginModule,
    parse_login_module,
)
from sparkmirror.config.secrets.variables import find_variables, has_only_variables
from sparkmirror.errors import ConfigError

_MECHANISM: Final = "sasl.mechanism"
_PASSWORD_TYPES: Final = {
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram-sha-256",
    "SCRAM-SHA-512": "scram-sha-512",
}
_KEY_STORE: Final = "ssl.keystore."
_KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - a key
_NAMED_BY_SECRET: Final = {f"{_KEY_STORE}{name}" for name in ("certificate.chain", "key", "type")}
_OPTIONS_OF_PASSWORD: Final = {"username", "password"}
_PART: Final = "login"


class ClusterAuthentication:
    """Makes the authentication of one cluster."""

    def __init__(self, settings: ClusterSettings, pod: PodVariables) -> None:
        self._settings = settings
        self._pod = pod

    def client_certificate(self) -> dict[str, Any] | None:
        """Return the client certificate of type `tls`; None if there is none."""
        store = self._settings.take_all(_KEY_STORE, _KEY_PASSWORD)
        chain, key = store.get(f"{_KEY_STORE}certificate.chain"), store.get(f"{_KEY_STORE}key")
        location = store.get(f"{_KEY_STORE}location")
        named = self._named_certificate(chain, key)
        if named is not None and _KEY_PASSWORD not in store:
            for name in sorted(store.keys() - _NAMED_BY_SECRET):
                self._settings.remark(store[name], "has no effect beside the certificate and key")
            return named
        first = location or chain or key
        if first is None:
            for other in store.values():
                self._settings.remark(other, "has no effect without a key store")
            return None
        certificate, private_key = (
            self._pod.secrets.created(self._settings.alias, "user", name, what, first.origin)
            for name, what in (
                ("user.crt", "the certificate of this store in PEM"),
                ("user.key", "its key in PEM, without a password,"),
            )
        )
        for other in store.values():
            if other is not first:
                self._settings.remark(other, f"the Secret {certificate.secret} replaces it")
        return _client_certificate(certificate, private_key)

    def _named_certificate(
        self, chain: WrittenSetting | None, key: WrittenSetting | None
    ) -> dict[str, Any] | None:
        """Return the certificate and key that one existing Secret has."""
        if chain is None or key is None:
            return None
        first, second = self._only_key(chain.value), self._only_key(key.value)
        if first is None or second is None or first.secret != second.secret:
            return None
        return _client_certificate(first, second)

    def _only_key(self, text: str) -> SecretKey | None:
        """Return the key of an existing Secret that a text consists of."""
        found = list(find_variables(text)) if has_only_variables(text) else []
        if len(found) != 1:
            return None
        return self._pod.secrets.key_of_file(f"{found[0].path}/{found[0].key}")

    def sasl(self) -> dict[str, Any]:
        """Return the login of SASL: of type `custom` if Strimzi has no type for all of it."""
        settings = self._settings.take_all("sasl.")
        jaas = settings.get(SASL_JAAS_CONFIG)
        module = _login_module(jaas)
        mechanism = settings[_MECHANISM].value if _MECHANISM in settings else "GSSAPI"
        is_password = mechanism in _PASSWORD_TYPES and settings.keys() == {
            _MECHANISM,
            SASL_JAAS_CONFIG,
        }
        if jaas and module and is_password and _is_login_of(mechanism, module):
            password = self._password(module.options["password"], jaas.origin)
            return {
                "type": _PASSWORD_TYPES[mechanism],
                "username": self._pod.translated(module.options["username"], jaas.origin),
                "passwordSecret": {"secretName": password.secret, "password": password.key},
            }
        return {"type": "custom", "sasl": True, "config": self._custom(settings, module)}

    def _password(self, text: str, origin: str) -> SecretKey:
        content = "the password of this login"
        found = list(find_variables(text)) if has_only_variables(text) else []
        if len(found) == 1:
            key = self._pod.secrets.key_of(found[0], origin)
            if key is not None:
                return key
            content = f"the value of {found[0]}"
        return self._pod.secrets.created(self._settings.alias, _PART, "password", content, origin)

    def _custom(
        self, settings: Mapping[str, WrittenSetting], module: LoginModule | None
    ) -> dict[str, str]:
        config = {}
        for key, setting in settings.items():
            if key == SASL_JAAS_CONFIG and module is not None:
                config[key] = self._jaas(module, setting)
            else:
                config[key] = self._pod.text(
                    key, setting.value, self._settings.alias, _PART, setting.origin
                )
        return config

    def _jaas(self, module: LoginModule, setting: WrittenSetting) -> str:
        """Return the login module. An option that may be a secret becomes a variable."""
        options = {}
        for name, value in module.options.items():
            is_public = name in PUBLIC_OPTIONS or name.endswith(".location")
            if value and not is_public and not has_only_variables(value):
                options[name] = self._pod.secret_text(
                    self._settings.alias, _PART, name, f"the option {name}", setting.origin
                )
            else:
                options[name] = self._pod.translated(value, setting.origin)
            if is_public and value.startswith("/"):
                self._settings.remark(setting, f"the pods need the file {value}")
        return jaas_line(module.class_name, options, module.flag)


def _client_certificate(certificate: SecretKey, key: SecretKey) -> dict[str, Any]:
    named = {"secretName": certificate.secret, "certificate": certificate.key, "key": key.key}
    return {"type": "tls", "certificateAndKey": named}


def _login_module(jaas: WrittenSetting | None) -> LoginModule | None:
    try:
        return parse_login_module(jaas.value)[0] if jaas is not None else None
    except ConfigError:
        return None


def _is_login_of(mechanism: str, module: LoginModule) -> bool:
    """Whether a module is the usual one of a mechanism, with a name and a password alone."""
    return (
        module.class_name == LOGIN_MODULES[mechanism]
        and module.options.keys() == _OPTIONS_OF_PASSWORD
        and bool(module.options["username"])
    )
