"""A cluster of a KafkaMirrorMaker2: its address, TLS and login as properties of a client. Pure."""

from __future__ import annotations

from typing import Final

from sparkmirror.cli.strimzi.config_provider_kinds import kind_of_class
from sparkmirror.cli.strimzi.jaas_line import jaas_line
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.left_out_fields import unread_remarks
from sparkmirror.cli.strimzi.resource_to_properties.oauth_authentication import oauth_login
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields
from sparkmirror.cli.strimzi.resource_to_properties.strimzi_placeholders import StrimziPlaceholders
from sparkmirror.cli.strimzi.resource_to_properties.trusted_certificates import trust_store
from sparkmirror.config.secrets.jaas import (
    LOGIN_MODULES,
    SASL_JAAS_CONFIG,
    parse_login_module,
)
from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.secrets.variables import has_only_variables
from sparkmirror.errors import ConfigError

WORKER_KEYS: Final = frozenset(
    {"group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"}
)
"""Group and topics of Strimzi's own workers, which must not share them with another program."""
WORKER_TEXT: Final = (
    "each flow has its own group and topics (mm2-offsets.<source>.internal); it continues behind "
    "the last record that Strimzi's mirror has copied"
)
_PROVIDERS_TEXT: Final = "the file declares the config providers that its placeholders need"
_NO_WORKERS_TEXT: Final = "has no effect here: only the cluster of Strimzi's workers has it"
_PASSWORD_TYPES: Final = {
    "plain": "PLAIN",
    "scram-sha-256": "SCRAM-SHA-256",
    "scram-sha-512": "SCRAM-SHA-512",
}
CUSTOM_PREFIXES: Final = ("sasl.", "ssl.keystore.")
"""What Strimzi reads in the config of a login of type `custom`."""
_PROTOCOLS: Final = {
    (False, False): "PLAINTEXT",
    (False, True): "SSL",
    (True, False): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}
"""By whether there is a SASL login and whether there is TLS."""


def cluster_properties(
    cluster: ResourceFields,
    placeholders: StrimziPlaceholders,
    remarks: list[StrimziRemark],
    *,
    has_workers: bool,
) -> dict[str, str]:
    """Return the properties of a cluster without its alias. Adds to `remarks` what is left out.

    `has_workers` says whether the workers of Strimzi belong to the cluster.
    """
    servers = cluster.required_text("bootstrapServers")
    path = cluster.path_of("bootstrapServers")
    properties = {"bootstrap.servers": placeholders.translated(servers, path)}
    has_tls = "tls" in cluster
    properties |= trust_store(cluster.part("tls"), placeholders.secrets, remarks)
    is_sasl = False
    if "authentication" in cluster:
        authentication = cluster.part("authentication")
        login, is_sasl = _Login(authentication, placeholders, remarks).properties()
        properties |= login
        if login and not has_tls and not is_sasl:
            text = "a client certificate has no effect without tls"
            remarks.append(StrimziRemark(authentication.path, text))
        remarks += unread_remarks(authentication)
    protocol = _PROTOCOLS[is_sasl, has_tls]
    if protocol != "PLAINTEXT":
        properties["security.protocol"] = protocol
    for key, value in cluster.settings("config").items():
        path = cluster.path_of(f"config.{key}")
        if key in WORKER_KEYS:
            remarks.append(StrimziRemark(path, WORKER_TEXT))
        elif key.startswith(CONFIG_PROVIDERS_KEY):
            if not has_workers:
                remarks.append(StrimziRemark(path, _NO_WORKERS_TEXT))
            elif key != CONFIG_PROVIDERS_KEY and not kind_of_class(value):
                remarks.append(StrimziRemark(path, _PROVIDERS_TEXT))
        else:
            properties[key] = placeholders.translated(value, path)
    remarks += unread_remarks(cluster)
    return properties


class _Login:
    """Reads the authentication of a cluster."""

    def __init__(
        self,
        authentication: ResourceFields,
        placeholders: StrimziPlaceholders,
        remarks: list[StrimziRemark],
    ) -> None:
        self._authentication = authentication
        self._placeholders = placeholders
        self._remarks = remarks

    def properties(self) -> tuple[dict[str, str], bool]:
        """Return the properties of the login, and whether it is one of SASL."""
        kind = self._authentication.required_text("type")
        if kind in _PASSWORD_TYPES:
            return self._password(_PASSWORD_TYPES[kind]), True
        if kind == "oauth":
            return oauth_login(self._authentication, self._placeholders, self._remarks), True
        if kind == "custom":
            return self._custom(), self._authentication.text("sasl") == "true"
        if kind == "tls":
            return self._client_certificate(), False
        if kind:
            known = ", ".join(["tls", *_PASSWORD_TYPES, "oauth", "custom"])
            self._authentication.fault(
                "type", f"{kind} is not a type of Strimzi; write one of {known}"
            )
        return {}, False

    def _client_certificate(self) -> dict[str, str]:
        named = self._authentication.part("certificateAndKey")
        secret = named.required_text("secretName")
        certificate, key = named.required_text("certificate"), named.required_text("key")
        self._remarks += unread_remarks(named)
        secrets = self._placeholders.secrets
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": secrets.placeholder(secret, certificate),
            "ssl.keystore.key": secrets.placeholder(secret, key),
        }

    def _password(self, mechanism: str) -> dict[str, str]:
        username = self._authentication.required_text("username")
        named = self._authentication.part("passwordSecret")
        password = self._placeholders.secrets.placeholder(
            named.required_text("secretName"), named.required_text("password")
        )
        self._remarks += unread_remarks(named)
        options = {
            "username": self._placeholders.translated(username, self._authentication.path),
            "password": password,
        }
        return {
            "sasl.mechanism": mechanism,
            SASL_JAAS_CONFIG: jaas_line(LOGIN_MODULES[mechanism], options),
        }

    def _custom(self) -> dict[str, str]:
        """Return the config of type `custom`; Strimzi reads only keys with its prefixes."""
        properties = {}
        for key, value in self._authentication.settings("config").items():
            field = self._authentication.path_of(f"config.{key}")
            if key.startswith(CUSTOM_PREFIXES):
                properties[key] = self._with_files_of_process(key, value, field)
            else:
                text = f"Strimzi reads only keys that begin with {' or '.join(CUSTOM_PREFIXES)}"
                self._remarks.append(StrimziRemark(field, text))
        return properties

    def _with_files_of_process(self, key: str, value: str, field: str) -> str:
        """Return the value with placeholders and files that the process can read."""
        if key.endswith(".location"):
            return self._placeholders.path(value, field)
        value = self._placeholders.translated(value, field)
        if key != SASL_JAAS_CONFIG or has_only_variables(value):
            return value
        try:
            module, _ = parse_login_module(value)
        except ConfigError as error:
            self._authentication.fault(f"config.{key}", str(error))
            return value
        files = {name: one for name, one in module.options.items() if one.startswith("/")}
        if not files:
            return value
        moved = {name: self._placeholders.path(one, field) for name, one in files.items()}
        return jaas_line(module.class_name, {**module.options, **moved}, module.flag)
