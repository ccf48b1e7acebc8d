"""The specification of a cluster to start: brokers, listeners, users and first topics.

Frozen values with their checks. The checks report all faults at once. Ports and processes are not
part of a specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from sparkmirror.cluster.produce_and_consume import ProducerRecord
from sparkmirror.errors import ConfigError, ConfigFault
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION
from sparkmirror.lab.kafka.kafka_version import is_before, needs_zookeeper

CONTROL_USER = "sparkmirror-lab"
MAX_BROKERS = 9
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_USER_NAME = re.compile(r"[A-Za-z0-9._$-]{1,64}")
_LISTENER_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_HEAP = re.compile(r"[1-9][0-9]*[mg]")


class ListenerProtocol(StrEnum):
    """A listener for clients, named after its security protocol.

    On SSL_EXPIRED brokers present a certificate that has expired, on SSL_OTHER_HOST a certificate
    for another host name.
    """

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"
    SSL_EXPIRED = "SSL_EXPIRED"
    SSL_OTHER_HOST = "SSL_OTHER_HOST"

    @property
    def security_protocol(self) -> str:
        """The `security.protocol` of its clients."""
        return "SSL" if self.has_faulty_certificate else self.value

    @property
    def has_faulty_certificate(self) -> bool:
        """Whether a client that verifies certificates refuses the brokers on this listener."""
        return self in (ListenerProtocol.SSL_EXPIRED, ListenerProtocol.SSL_OTHER_HOST)

    @property
    def uses_tls(self) -> bool:
        """Whether brokers present a TLS certificate on this listener."""
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether clients log in on this listener with SASL."""
        return self.security_protocol.startswith("SASL_")


_OTHER_LISTENERS = frozenset({*ListenerProtocol, "CONTROL", "CONTROLLER"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthEndpoints:
    """Where an OAuth server publishes its keys (JWKS) and issues tokens. The lab does not run it.

    The name and the password of a user are the client credentials for a token.
    """

    jwks_url: str
    token_url: str
    audience: str = "kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic that the start creates. Replication factor -1 means the brokers' default."""

    name: str
    partitions: int = 1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    records: tuple[ProducerRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A cluster to start. The constructor raises ConfigError with all faults.

    `users` log in on the SASL listeners with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, and with
    OAUTHBEARER if `oauth` names the server whose tokens the brokers accept. With `mutual_tls` the
    SSL listener requires a client certificate; each user has one. With `fast_start` brokers start
    sooner but run slower: use it for tests, not for benchmarks.
    """

    name: str
    brokers: int = 1
    version: str = DEFAULT_VERSION
    listeners: tuple[ListenerProtocol, ...] = (ListenerProtocol.PLAINTEXT,)
    mutual_tls: bool = False
    authorizer: bool = False
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    super_users: tuple[str, ...] = ()
    oauth: OAuthEndpoints | None = None
    advertised: Mapping[str, str] = field(default_factory=dict)
    """For one broker: listeners that it advertises with another address, `host:port`."""
    proxied_listeners: Mapping[str, str] = field(default_factory=dict)
    """For one broker: further PLAINTEXT listeners, each with the address of the proxy in front of
    it, which the broker advertises, `host:port`."""
    racks: tuple[str, ...] = ()
    """The racks of the brokers, assigned in turn (`broker.rack`)."""
    properties: Mapping[str, str] = field(default_factory=dict)
    jvm_options: tuple[str, ...] = ()
    """Options of every broker's JVM, behind those of the lab."""
    topics: tuple[TopicSpec, ...] = ()
    heap: str = "512m"
    fast_start: bool = False

    def __post_init__(self) -> None:
        if faults := list(_faults(self)):
            raise ConfigError(faults, where=f"cluster {self.name!r}")

    @property
    def has_zookeeper(self) -> bool:
        """Whether a ZooKeeper keeps the cluster's metadata, instead of controllers."""
        return needs_zookeeper(self.version)

    @property
    def controllers(self) -> int:
        """The number of brokers that are KRaft controllers too; of three, one can fail."""
        if self.has_zookeeper:
            return 0
        return 3 if self.brokers >= 3 else 1

    @property
    def has_control_listener(self) -> bool:
        """Whether brokers and the lab use the CONTROL listener, with a super user.

        A PLAINTEXT cluster without an authorizer does not need it: every client has all rights.
        """
        return self.authorizer or self.listeners != (ListenerProtocol.PLAINTEXT,)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without the topics' records, which only the start needs."""
        plain = asdict(self)
        for topic in plain["topics"]:
            del topic["records"]
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """Return the specification of an object from `to_json`, also read back from a file."""
        return cls(
            **{
                **plain,
                "listeners": tuple(ListenerProtocol(name) for name in plain["listeners"]),
                "super_users": tuple(plain["super_users"]),
                "oauth": OAuthEndpoints(**plain["oauth"]) if plain.get("oauth") else None,
                "jvm_options": tuple(plain.get("jvm_options", ())),
                "racks": tuple(plain.get("racks", ())),
                "topics": tuple(TopicSpec(**topic) for topic in plain["topics"]),
            }
        )


def _faults(spec: ClusterSpec) -> Iterator[ConfigFault]:
    if not _NAME.fullmatch(spec.name):
        yield ConfigFault(
            "name", f"{spec.name!r} is no name: use letters, digits, '.', '_' and '-'"
        )
    if not 1 <= spec.brokers <= MAX_BROKERS:
        yield ConfigFault("brokers", f"{spec.brokers} brokers: choose 1 to {MAX_BROKERS}")
    if not _HEAP.fullmatch(spec.heap):
        yield ConfigFault("heap", f"{spec.heap!r} is no heap size: write it like 512m or 1g")
    yield from _listener_faults(spec)
    yield from _user_faults(spec)
    yield from _topic_faults(spec)


def _listener_faults(spec: ClusterSpec) -> Iterator[ConfigFault]:
    if not spec.listeners or len(set(spec.listeners)) != len(spec.listeners):
        yield ConfigFault("listeners", "name each listener once, and at least one")
    elif spec.listeners[0].has_faulty_certificate:
        yield ConfigFault(
            "listeners", "the first listener needs a valid certificate: the lab's commands use it"
        )
    if spec.mutual_tls and ListenerProtocol.SSL not in spec.listeners:
        yield ConfigFault("mutual_tls", "mutual TLS is for the SSL listener: add it")
    if spec.mutual_tls and not spec.users:
        yield ConfigFault("mutual_tls", "mutual TLS needs users, each of whom gets a certificate")
    for listener in spec.advertised:
        if listener not in spec.listeners:
            yield ConfigFault("advertised", f"there is no listener {listener}")
    for listener in spec.proxied_listeners:
        if not _LISTENER_NAME.fullmatch(listener) or listener in _OTHER_LISTENERS:
            yield ConfigFault("proxied_listeners", f"{listener!r} is no name of a further listener")
    if (spec.advertised or spec.proxied_listeners) and spec.brokers > 1:
        yield ConfigFault("advertised", "several brokers cannot advertise one address")


def _user_faults(spec: ClusterSpec) -> Iterator[ConfigFault]:
    if any(listener.uses_sasl for listener in spec.listeners) and not spec.users:
        yield ConfigFault("users", "a SASL listener needs at least one user")
    if CONTROL_USER in spec.users:
        yield ConfigFault("users", f"{CONTROL_USER} is the lab's own user: choose another name")
    for user, password in spec.users.items():
        if not _USER_NAME.fullmatch(user):
            yield ConfigFault(
                "users", f"{user!r} is no user name: use letters, digits, '.', '_', '$', '-'"
            )
        if not password:
            yield ConfigFault("users", f"user {user} has an empty password")
    if spec.oauth is not None and is_before(spec.version, 3, 1):
        yield ConfigFault("oauth", "brokers accept tokens of an OAuth server from Kafka 3.1 on")
    for user in spec.super_users:
        if user not in spec.users:
            yield ConfigFault("super_users", f"{user!r} is not among the users")


def _topic_faults(spec: ClusterSpec) -> Iterator[ConfigFault]:
    names = [topic.name for topic in spec.topics]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield ConfigFault("topics", f"topic {name} is given twice")
    for topic in spec.topics:
        if topic.partitions < 1:
            yield ConfigFault("topics", f"topic {topic.name} needs at least one partition")
        if topic.replication_factor > spec.brokers:
            yield ConfigFault(
                "topics",
                f"topic {topic.name} wants {topic.replication_factor} replicas,"
                f" the cluster has {spec.brokers} brokers",
            )
        for record in topic.records:
            if record.partition is not None and not 0 <= record.partition < topic.partitions:
                yield ConfigFault(
                    "topics", f"topic {topic.name} has no partition {record.partition}"
                )
                break
