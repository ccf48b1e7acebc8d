"""TLS, as every Kafka client speaks it: the `ssl.*` keys in Kafka's order."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import ValidList, ValidString
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.no_effect import (
    JAVA_CLASS,
    JAVA_RUNTIME,
    JAVA_STORE,
)

CLIENT_SSL: Final = ConfigDef(
    ConfigKey(
        "ssl.protocol",
        Type.STRING,
        "TLSv1.3",
        MEDIUM,
        JAVA_RUNTIME,
    ),
    ConfigKey("ssl.provider", Type.STRING, None, MEDIUM, JAVA_RUNTIME),
    ConfigKey(
        "ssl.cipher.suites",
        Type.LIST,
        (),
        LOW,
        JAVA_RUNTIME,
        validator=ValidList(),
    ),
    ConfigKey(
        "ssl.enabled.protocols",
        Type.LIST,
        ("TLSv1.2", "TLSv1.3"),
        MEDIUM,
        "TLS versions that may be spoken. Narrow it to TLSv1.3 once all brokers can; there is no "
        "reason to widen it.",
        validator=ValidList(),
    ),
    ConfigKey(
        "ssl.keystore.type",
        Type.STRING,
        "JKS",
        MEDIUM,
        JAVA_STORE,
    ),
    ConfigKey(
        "ssl.keystore.location",
        Type.STRING,
        None,
        HIGH,
        "PEM file with the client's own private key and certificates. Needed only when the "
        "brokers ask clients for a certificate (mutual TLS). JKS and PKCS12 are refused.",
    ),
    ConfigKey(
        "ssl.keystore.password",
        Type.PASSWORD,
        None,
        HIGH,
        JAVA_STORE,
    ),
    ConfigKey(
        "ssl.key.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the private key in ssl.keystore.location or ssl.keystore.key, if it is "
        "encrypted.",
    ),
    ConfigKey(
        "ssl.keystore.key",
        Type.PASSWORD,
        None,
        HIGH,
        "The client's private key as PEM text (PKCS#8), instead of a file. Goes together with "
        "ssl.keystore.certificate.chain.",
    ),
    ConfigKey(
        "ssl.keystore.certificate.chain",
        Type.PASSWORD,
        None,
        HIGH,
        "The client's certificate as PEM text, followed by the certificates that signed it. Goes "
        "together with ssl.keystore.key.",
    ),
    ConfigKey(
        "ssl.truststore.certificates",
        Type.PASSWORD,
        None,
        HIGH,
        "Certificates to trust as PEM text, instead of a file.",
    ),
    ConfigKey(
        "ssl.truststore.type",
        Type.STRING,
        "JKS",
        MEDIUM,
        JAVA_STORE,
    ),
    ConfigKey(
        "ssl.truststore.location",
        Type.STRING,
        None,
        HIGH,
        "PEM file with the certificates that the client trusts. Set it when no public authority "
        "has signed the certificates of the brokers. JKS and PKCS12 are refused.",
    ),
    ConfigKey(
        "ssl.truststore.password",
        Type.PASSWORD,
        None,
        HIGH,
        JAVA_STORE,
    ),
    ConfigKey("ssl.keymanager.algorithm", Type.STRING, "SunX509", LOW, JAVA_RUNTIME),
    ConfigKey("ssl.trustmanager.algorithm", Type.STRING, "PKIX", LOW, JAVA_RUNTIME),
    ConfigKey(
        "ssl.endpoint.identification.algorithm",
        Type.STRING,
        "https",
        LOW,
        "How the host name of a broker is checked against its certificate. An empty value skips "
        "the check and makes impersonation possible: for tests only.",
    ),
    ConfigKey("ssl.secure.random.implementation", Type.STRING, None, LOW, JAVA_RUNTIME),
    ConfigKey(
        "ssl.engine.factory.class",
        Type.CLASS,
        None,
        LOW,
        JAVA_CLASS,
    ),
)

REST_CLIENT_AUTH: Final = ConfigKey(
    "ssl.client.auth",
    Type.STRING,
    "none",
    LOW,
    "Whether callers of an HTTPS listener must show a certificate: required, requested (shown if "
    "they have one) or none.",
    validator=ValidString(("required", "requested", "none")),
)
