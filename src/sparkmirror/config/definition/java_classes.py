"""The Java classes that people name in their configs and that mean something here.

A class-typed key holds a Java name although no Java class is ever loaded. This module knows which
names are understood, by kind, and their short forms: `ByteArrayConverter` and `ByteArray` stand
for the full name, as in Connect. What stands behind a name is other rooms' business; whoever adds
classes of their own passes another resolver instead of `known_class`.
"""

from __future__ import annotations

from typing import Final

_CONNECT: Final = "org.apache.kafka.connect"
_COMMON: Final = "org.apache.kafka.common"

SOURCE_CONNECTOR: Final = f"{_CONNECT}.mirror.MirrorSourceConnector"
CHECKPOINT_CONNECTOR: Final = f"{_CONNECT}.mirror.MirrorCheckpointConnector"
HEARTBEAT_CONNECTOR: Final = f"{_CONNECT}.mirror.MirrorHeartbeatConnector"

DEFAULT_REPLICATION_POLICY: Final = f"{_CONNECT}.mirror.DefaultReplicationPolicy"
DEFAULT_TOPIC_FILTER: Final = f"{_CONNECT}.mirror.DefaultTopicFilter"
DEFAULT_GROUP_FILTER: Final = f"{_CONNECT}.mirror.DefaultGroupFilter"
DEFAULT_CONFIG_FILTER: Final = f"{_CONNECT}.mirror.DefaultConfigPropertyFilter"
FORWARDING_ADMIN: Final = "org.apache.kafka.clients.admin.ForwardingAdmin"
JMX_REPORTER: Final = f"{_COMMON}.metrics.JmxReporter"
SIMPLE_HEADER_CONVERTER: Final = f"{_CONNECT}.storage.SimpleHeaderConverter"
JSON_CONVERTER: Final = f"{_CONNECT}.json.JsonConverter"
STRING_CONVERTER: Final = f"{_CONNECT}.storage.StringConverter"

CONNECTORS: Final = (CHECKPOINT_CONNECTOR, HEARTBEAT_CONNECTOR, SOURCE_CONNECTOR)

REPLICATION_POLICIES: Final = (
    DEFAULT_REPLICATION_POLICY,
    f"{_CONNECT}.mirror.IdentityReplicationPolicy",
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
)

FILTER_CLASSES: Final = (DEFAULT_TOPIC_FILTER, DEFAULT_GROUP_FILTER, DEFAULT_CONFIG_FILTER)

CONVERTERS: Final = (
    *(
        f"{_CONNECT}.converters.{kind}Converter"
        for kind in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short")
    ),
    JSON_CONVERTER,
    STRING_CONVERTER,
)

HEADER_CONVERTERS: Final = (*CONVERTERS[:-1], SIMPLE_HEADER_CONVERTER, STRING_CONVERTER)

TRANSFORMATIONS: Final = tuple(
    f"{_CONNECT}.transforms.{name}"
    for name in (
        "Cast$Key",
        "Cast$Value",
        "DropHeaders",
        "ExtractField$Key",
        "ExtractField$Value",
        "Filter",
        "Flatten$Key",
        "Flatten$Value",
        "HeaderFrom$Key",
        "HeaderFrom$Value",
        "HoistField$Key",
        "HoistField$Value",
        "InsertField$Key",
        "InsertField$Value",
        "InsertHeader",
        "MaskField$Key",
        "MaskField$Value",
        "RegexRouter",
        "ReplaceField$Key",
        "ReplaceField$Value",
        "SetSchemaMetadata$Key",
        "SetSchemaMetadata$Value",
        "TimestampConverter$Key",
        "TimestampConverter$Value",
        "TimestampRouter",
        "ValueToKey",
    )
)

PREDICATES: Final = tuple(
    f"{_CONNECT}.transforms.predicates.{name}"
    for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
)

SECURITY_CLASSES: Final = (
    f"{_COMMON}.security.oauthbearer.DefaultJwtRetriever",
    f"{_COMMON}.security.oauthbearer.ClientCredentialsJwtRetriever",
    f"{_COMMON}.security.oauthbearer.FileJwtRetriever",
    f"{_COMMON}.security.oauthbearer.JwtBearerJwtRetriever",
    f"{_COMMON}.security.oauthbearer.DefaultJwtValidator",
    f"{_COMMON}.security.oauthbearer.ClientJwtValidator",
    f"{_COMMON}.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    f"{_COMMON}.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    f"{_COMMON}.security.ssl.DefaultSslEngineFactory",
    f"{_COMMON}.security.authenticator.DefaultLogin",
    f"{_COMMON}.security.authenticator.SaslClientCallbackHandler",
    "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
)

CONFIG_PROVIDER_CLASSES: Final = tuple(
    f"{_COMMON}.config.provider.{kind}ConfigProvider" for kind in ("File", "Directory", "EnvVar")
)

_SUFFIXES: Final = {
    "Connector": CONNECTORS,
    "Converter": CONVERTERS,
    "HeaderConverter": (SIMPLE_HEADER_CONVERTER,),
    "ReplicationPolicy": REPLICATION_POLICIES,
    "": (
        *FILTER_CLASSES,
        *TRANSFORMATIONS,
        *PREDICATES,
        *SECURITY_CLASSES,
        *CONFIG_PROVIDER_CLASSES,
        FORWARDING_ADMIN,
        JMX_REPORTER,
    ),
}


def _class_names_and_aliases() -> dict[str, str]:
    """Every way to write every known class. A short form that two classes share is nobody's."""
    full: dict[str, str] = {}
    short: dict[str, set[str]] = {}
    for suffix, names in _SUFFIXES.items():
        for name in names:
            simple = name.rpartition(".")[2]
            full[name] = name
            for form in (simple, simple.removesuffix(suffix)):
                short.setdefault(form, set()).add(name)
    unique = {form: next(iter(names)) for form, names in short.items() if len(names) == 1}
    return unique | full


_NAMES_AND_ALIASES: Final = _class_names_and_aliases()


def resolve_class(name: str) -> str | None:
    """Full name of the class that `name` stands for, or None if no such class is known."""
    return _NAMES_AND_ALIASES.get(name)
