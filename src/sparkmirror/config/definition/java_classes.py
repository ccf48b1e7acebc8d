"""The Java class names that configs may contain.

A class-typed key holds the name of a Java class, but no Java class is loaded. Names are accepted in
full and in short, as in Connect: `ByteArrayConverter` and `ByteArray` mean the same class. A
caller with classes of its own passes another resolver instead of `resolve_class`.
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
        f"{_CONNECT}.converters.{type_name}Converter"
        for type_name in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short")
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
    f"{_COMMON}.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    f"{_COMMON}.security.ssl.DefaultSslEngineFactory",
    f"{_COMMON}.security.authenticator.DefaultLogin",
    f"{_COMMON}.security.authenticator.SaslClientCallbackHandler",
    "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
)

CONFIG_PROVIDER_CLASSES: Final = tuple(
    f"{_COMMON}.config.provider.{source}ConfigProvider"
    for source in ("File", "Directory", "EnvVar")
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
    """Every name and alias of every known class. An alias that two classes share is left out."""
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
    """The full name of the class that `name` means; None if the class is unknown."""
    return _NAMES_AND_ALIASES.get(name)
