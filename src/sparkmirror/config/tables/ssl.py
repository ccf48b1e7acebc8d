"""TLS, as every Kafka client speaks it: the `ssl.*` keys in Kafka's order."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import ValidList, ValidString
from sparkmirror.config.definition.value_types import Type

_JVM_ONLY = "Chooses a part of a Java runtime; accepted so that old files keep working, not used."

CLIENT_SSL: Final = ConfigDef(
    ConfigKey(
        "ssl.protocol",
        Type.STRING,
        "TLSv1.3",
        MEDIUM,
        "TLS version a Java client would ask for. Accepted, but it caps nothing: which versions "
        "may be spoken is decided by ssl.enabled.protocols.",
    ),
    ConfigKey("ssl.provider", Type.STRING, None, MEDIUM, _JVM_ONLY),
    ConfigKey(
        "ssl.cipher.suites",
        Type.LIST,
        (),
        LOW,
        "Cipher suites to allow, by their IANA names. Leave empty to allow all that the TLS "
        "library considers safe.",
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
        "Format of the key store: JKS, PKCS12 or PEM. For JKS and PKCS12 the content of the file "
        "decides, whatever is said here.",
    ),
    ConfigKey(
        "ssl.keystore.location",
        Type.STRING,
        None,
        HIGH,
        "File with the client's own certificate and private key. Needed only when the brokers "
        "ask clients for a certificate (mutual TLS).",
    ),
    ConfigKey(
        "ssl.keystore.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the file in ssl.keystore.location. Must be left out for PEM.",
    ),
    ConfigKey(
        "ssl.key.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the private key inside the key store or in ssl.keystore.key. Defaults to "
        "the password of the store.",
    ),
    ConfigKey(
        "ssl.keystore.key",
        Type.PASSWORD,
        None,
        HIGH,
        "The client's private key as PEM text (PKCS#8), instead of a file. Goes together with "
        "ssl.keystore.certificate.chain and ssl.keystore.type=PEM.",
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
        "Certificates to trust as PEM text, instead of a file. Use it with "
        "ssl.truststore.type=PEM.",
    ),
    ConfigKey(
        "ssl.truststore.type",
        Type.STRING,
        "JKS",
        MEDIUM,
        "Format of the trust store: JKS, PKCS12 or PEM. For JKS and PKCS12 the content of the "
        "file decides, whatever is said here.",
    ),
    ConfigKey(
        "ssl.truststore.location",
        Type.STRING,
        None,
        HIGH,
        "File with the certificates of those whom the client trusts to vouch for a broker. Set "
        "it when the brokers' certificates are not signed by a public authority.",
    ),
    ConfigKey(
        "ssl.truststore.password",
        Type.PASSWORD,
        None,
        HIGH,
        "Password of the file in ssl.truststore.location. A JKS file can be read without, but "
        "then nobody notices that it was changed.",
    ),
    ConfigKey("ssl.keymanager.algorithm", Type.STRING, "SunX509", LOW, _JVM_ONLY),
    ConfigKey("ssl.trustmanager.algorithm", Type.STRING, "PKIX", LOW, _JVM_ONLY),
    ConfigKey(
        "ssl.endpoint.identification.algorithm",
        Type.STRING,
        "https",
        LOW,
        "How the host name of a broker is checked against its certificate. Set it to nothing to "
        "skip the check, which opens the door to impostors: for tests only.",
    ),
    ConfigKey("ssl.secure.random.implementation", Type.STRING, None, LOW, _JVM_ONLY),
    ConfigKey(
        "ssl.engine.factory.class",
        Type.CLASS,
        None,
        LOW,
        "Java class that would make TLS engines. Only Kafka's own DefaultSslEngineFactory is "
        "understood; leave it out.",
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
