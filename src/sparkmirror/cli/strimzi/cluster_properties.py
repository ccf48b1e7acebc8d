"""A cluster of a KafkaMirrorMaker2: its address, TLS and login as properties of a client. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sparkmirror.cli.strimzi.kubernetes_secret_files import SecretFiles
from sparkmirror.cli.strimzi.remarks import StrimziRemark, unread_remarks
from sparkmirror.cli.strimzi.resource_fields import ResourceFields
from sparkmirror.config.secrets.jaas import LOGIN_MODULES

DEFAULT_CERTIFICATE: Final = "ca.crt"
"""The key of the certificate authority in the Secrets that Strimzi itself creates."""
_OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER: Final = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
_OAUTH_TEXTS: Final = {
    "clientId": "oauth.client.id",
    "tokenEndpointUri": "oauth.token.endpoint.uri",
    "scope": "oauth.scope",
    "audience": "oauth.audience",
}
_OAUTH_SECRETS: Final = {
    "clientSecret": "oauth.client.secret",
    "accessToken": "oauth.access.token",
    "refreshToken": "oauth.refresh.token",
}

WORKER_KEYS: Final = frozenset(
    {"group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"}
)
"""Group and topics of Strimzi's own workers, which must not share them with another program."""
WORKER_TEXT: Final = (
    "each flow has its own group and topics (mm2-offsets.<source>.internal); it continues behind "
    "the last record that Strimzi's mirror has copied"
)


def cluster_properties(
    cluster: ResourceFields, secrets: SecretFiles, remarks: list[StrimziRemark]
) -> dict[str, str]:
    """Return the properties of a cluster without its alias. Adds to `remarks` what is left out."""
    properties = {"bootstrap.servers": cluster.required_text("bootstrapServers")}
    has_tls = "tls" in cluster
    properties |= _tls(cluster.part("tls"), secrets, remarks)
    is_sasl = False
    if "authentication" in cluster:
        authentication = cluster.part("authentication")
        login = _login(authentication, secrets)
        is_sasl = login is not None
        properties |= _client_certificate(authentication, secrets) if login is None else login
        remarks += unread_remarks(authentication)
    protocol = _PROTOCOLS[is_sasl, has_tls]
    if protocol != "PLAINTEXT":
        properties["security.protocol"] = protocol
    settings = cluster.settings("config")
    for key in sorted(WORKER_KEYS & settings.keys()):
        del settings[key]
        remarks.append(StrimziRemark(cluster.path_of(f"config.{key}"), WORKER_TEXT))
    properties |= settings
    remarks += unread_remarks(cluster)
    return {key: secrets.with_files(value) for key, value in properties.items()}


_PROTOCOLS: Final = {
    (False, False): "PLAINTEXT",
    (False, True): "SSL",
    (True, False): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}
"""By whether there is a SASL login and whether there is TLS."""


def _tls(tls: ResourceFields, secrets: SecretFiles, remarks: list[StrimziRemark]) -> dict[str, str]:
    """Return the trust store. Without certificates the public authorities are trusted."""
    named = [
        (secret, key)
        for certificate in tls.items("trustedCertificates")
        for secret, key in _certificate_keys(certificate, secrets, remarks)
    ]
    remarks += unread_remarks(tls)
    if not named:
        return {}
    store = {"ssl.truststore.type": "PEM"}
    if len(named) == 1:
        return {**store, "ssl.truststore.location": secrets.path(*named[0])}
    placeholders = [secrets.placeholder(secret, key) for secret, key in named]
    return {**store, "ssl.truststore.certificates": "\n".join(placeholders)}


def _certificate_keys(
    certificate: ResourceFields, secrets: SecretFiles, remarks: list[StrimziRemark]
) -> list[tuple[str, str]]:
    secret = certificate.required_text("secretName")
    key, pattern = certificate.text("certificate"), certificate.text("pattern")
    remarks += unread_remarks(certificate)
    if key is not None:
        return [(secret, key)]
    if pattern is None:
        certificate.fault("certificate", "is missing: name the key of the Secret, or a pattern")
        return []
    found = secrets.matching_keys(secret, pattern)
    if not found:
        text = f"the keys of Secret {secret} are not in this file: {DEFAULT_CERTIFICATE} is assumed"
        remarks.append(StrimziRemark(certificate.path_of("pattern"), text))
    return [(secret, name) for name in found or [DEFAULT_CERTIFICATE]]


def _login(authentication: ResourceFields, secrets: SecretFiles) -> dict[str, str] | None:
    """Return the properties of a SASL login; None if the type is `tls` or is wrong."""
    kind = authentication.required_text("type")
    read = _LOGINS.get(kind)
    if read is not None:
        return read(authentication, secrets)
    if kind not in {"tls", ""}:
        known = ", ".join(["tls", *_LOGINS])
        authentication.fault("type", f"{kind} is not a type of Strimzi; write one of {known}")
    return None


def _client_certificate(authentication: ResourceFields, secrets: SecretFiles) -> dict[str, str]:
    """Return the key store of type `tls`, or the settings of type `custom` without SASL."""
    if authentication.text("type") != "tls":
        return authentication.settings("config")
    named = authentication.part("certificateAndKey")
    secret = named.required_text("secretName")
    certificate, key = named.required_text("certificate"), named.required_text("key")
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": secrets.placeholder(secret, certificate),
        "ssl.keystore.key": secrets.placeholder(secret, key),
    }


def _password_login(mechanism: str) -> Callable[[ResourceFields, SecretFiles], dict[str, str]]:
    def read(authentication: ResourceFields, secrets: SecretFiles) -> dict[str, str]:
        username = authentication.required_text("username")
        named = authentication.part("passwordSecret")
        password = secrets.placeholder(
            named.required_text("secretName"), named.required_text("password")
        )
        options = {"username": username, "password": password}
        return {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": _jaas(LOGIN_MODULES[mechanism], options),
        }

    return read


def _oauth_login(authentication: ResourceFields, secrets: SecretFiles) -> dict[str, str]:
    options = {
        option: text
        for name, option in _OAUTH_TEXTS.items()
        if (text := authentication.text(name)) is not None
    }
    for name, option in _OAUTH_SECRETS.items():
        if name in authentication:
            named = authentication.part(name)
            options[option] = secrets.placeholder(
                named.required_text("secretName"), named.required_text("key")
            )
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": _jaas(_OAUTH_MODULE, options),
        "sasl.login.callback.handler.class": _OAUTH_HANDLER,
    }


def _custom_login(authentication: ResourceFields, secrets: SecretFiles) -> dict[str, str] | None:
    del secrets  # its config has placeholders of its own
    if authentication.text("sasl") != "true":
        return None
    return authentication.settings("config")


_LOGINS: Final[Mapping[str, Callable[[ResourceFields, SecretFiles], dict[str, str] | None]]] = {
    "plain": _password_login("PLAIN"),
    "scram-sha-256": _password_login("SCRAM-SHA-256"),
    "scram-sha-512": _password_login("SCRAM-SHA-512"),
    "oauth": _oauth_login,
    "custom": _custom_login,
}


def _jaas(module: str, options: Mapping[str, str]) -> str:
    written = (f"{name}={_quoted(value)}" for name, value in options.items())
    return " ".join([module, "required", *written]) + ";"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
