"""TLS, as every Kafka client uses it: the `ssl.*` keys in Kafka's order."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import ValidList, ValidString
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.no_effect_reasons import ENABLED_PROTOCOLS_DECIDE, JAVA_RUNTIME

CLIENT_SSL: Final = ConfigDef(
    ConfigKey(
        "ssl.protocol",
        Type.STRING,
        "TLSv1.3",
        MEDIUM,
        ENABLED_PROTOCOLS_DECIDE,
    ),
    ConfigKey("ssl.provider", Type.STRING, None, MEDIUM, JAVA_RUNTIME),
    ConfigKey(
        "ssl.cipher.suites",
        Type.LIST,
        (),
        LOW,
        "Cipher suites that may be used, under the names that Java has for them; empty: OpenSSL's "
        "choice. A TLS version without a suite in the list is not used. Python cannot leave out "
        "single suites of TLS 1.3.",
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
        "Need not be set: the content of the store shows its type, which is JKS, JCEKS, PKCS12 or "
        "PEM. Another type here is a warning.",
    ),
    ConfigKey(
        "ssl.keystore.location",
        Type.STRING,
        None,
        HIGH,
        "File with the client's own private key and certificates: JKS, JCEKS, PKCS12 or PEM. "
        "Needed only when the brokers ask clients for a certificate (mutual TLS). A file that "
        "changes is read again before the next connection.",
    ),
    ConfigKey(
        "ssl.keystore.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the store in ssl.keystore.location. PEM has none.",
    ),
    ConfigKey(
        "ssl.key.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the private key in ssl.keystore.location or ssl.keystore.key. Without it, "
        "the password of the store is used, except for PEM.",
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
        "Need not be set: the content of the store shows its type, which is JKS, JCEKS, PKCS12 or "
        "PEM. Another type here is a warning.",
    ),
    ConfigKey(
        "ssl.truststore.location",
        Type.STRING,
        None,
        HIGH,
        "File with the certificates that the client trusts: JKS, JCEKS, PKCS12 or PEM. Without "
        "it, the client trusts the authorities of the system. A file that changes is read again "
        "before the next connection.",
    ),
    ConfigKey(
        "ssl.truststore.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the store in ssl.truststore.location. Without it, a JKS store is read and "
        "its integrity is not checked. PEM has none.",
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
        "Only Kafka's own DefaultSslEngineFactory, which is the default, may be named: no other "
        "Java class can be loaded.",
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
