"""server.properties of one node, computed from the cluster's description.

Settings for small clusters on one computer: internal topics with few partitions and at most three
replicas, no delay before a group's first rebalance, a small buffer for the log cleaner. All other
settings keep Kafka's default. The properties of the specification override all of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sparkmirror.lab.cluster.certificates import (
    STORE_PASSWORD,
    CertificateAuthority,
    CertificateFault,
)
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.cluster_spec import CONTROL_USER, ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.node_listeners import (
    CONTROL_LISTENER,
    CONTROLLER_LISTENER,
    LabNode,
    inter_broker_listener,
    security_protocols,
)
from sparkmirror.lab.cluster.sasl_config import (
    MECHANISMS,
    OAUTHBEARER,
    broker_jaas_config,
    oauth_listener_properties,
)
from sparkmirror.lab.kafka.kafka_version import is_before

BROKER_CERTIFICATE = "broker"
FAULTY_CERTIFICATES = {
    ListenerProtocol.SSL_EXPIRED: ("broker-expired", CertificateFault.EXPIRED),
    ListenerProtocol.SSL_OTHER_HOST: ("broker-other-host", CertificateFault.OTHER_HOST),
}
"""The brokers' certificates on the listeners with a faulty one."""
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_ZOOKEEPER_SESSION_TIMEOUT_MS = "9000"
_ZOOKEEPER_CONNECTION_TIMEOUT_MS = "60000"
_INTERNAL_TOPIC_PARTITIONS = "4"
_CLEANER_BUFFER_BYTES = str(8 * 1024 * 1024)


def server_properties(
    description: ClusterDescription, node: LabNode, data: Path, authority: CertificateAuthority
) -> dict[str, str]:
    """Return the server.properties of one node."""
    spec = description.spec
    properties = {
        **(_zookeeper_properties if spec.has_zookeeper else _kraft_properties)(description, node),
        "log.dirs": str(data),
        **_listener_properties(description, node),
        **_small_cluster_properties(spec),
    }
    if spec.racks:
        properties["broker.rack"] = spec.racks[(node.node_id - 1) % len(spec.racks)]
    if spec.has_control_listener:
        properties |= _control_listener_properties(description)
    for listener in spec.listeners:
        if listener.uses_sasl:
            properties |= _sasl_properties(listener.value.lower(), description)
    if any(listener.uses_tls for listener in spec.listeners):
        properties |= _tls_properties(spec, authority)
    if spec.authorizer:
        super_users = (CONTROL_USER, *spec.super_users)
        properties["authorizer.class.name"] = (
            _ZOOKEEPER_AUTHORIZER if spec.has_zookeeper else _AUTHORIZER
        )
        properties["super.users"] = ";".join(f"User:{user}" for user in super_users)
    return {**properties, **spec.properties}


def _kraft_properties(description: ClusterDescription, node: LabNode) -> dict[str, str]:
    voters = [voter for voter in description.nodes if voter.is_controller]
    return {
        "node.id": str(node.node_id),
        "process.roles": "broker,controller" if node.is_controller else "broker",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.voters": ",".join(
            f"{voter.node_id}@{voter.address(CONTROLLER_LISTENER)}" for voter in voters
        ),
    }


def _zookeeper_properties(description: ClusterDescription, node: LabNode) -> dict[str, str]:
    """Return the properties of a ZooKeeper cluster, which notices a dead broker as soon as KRaft.

    A busy computer may be slow to connect, hence the other timeout.
    """
    return {
        "broker.id": str(node.node_id),
        "zookeeper.connect": str(description.zookeeper),
        "zookeeper.session.timeout.ms": _ZOOKEEPER_SESSION_TIMEOUT_MS,
        "zookeeper.connection.timeout.ms": _ZOOKEEPER_CONNECTION_TIMEOUT_MS,
    }


def _listener_properties(description: ClusterDescription, node: LabNode) -> dict[str, str]:
    def urls(names: tuple[str, ...]) -> str:
        return ",".join(f"{name}://{node.address(name)}" for name in names)

    other_addresses = {**description.spec.advertised, **description.spec.proxied_listeners}

    def advertised_url(name: str) -> str:
        return f"{name}://{other_addresses.get(name, node.address(name))}"

    protocols = security_protocols(description.spec)
    return {
        "listeners": urls(tuple(node.ports)),
        "advertised.listeners": ",".join(map(advertised_url, node.broker_listeners)),
        "inter.broker.listener.name": inter_broker_listener(description.spec),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
    }


def _small_cluster_properties(spec: ClusterSpec) -> dict[str, str]:
    replicas = min(3, spec.brokers)
    in_sync = min(2, replicas)
    return {
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": _INTERNAL_TOPIC_PARTITIONS,
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.num.partitions": _INTERNAL_TOPIC_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "share.coordinator.state.topic.num.partitions": _INTERNAL_TOPIC_PARTITIONS,
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": _CLEANER_BUFFER_BYTES,
        # No record in the metadata log while nothing changes: idle clusters cost less processor.
        "metadata.max.idle.interval.ms": "0",
    }


def _control_listener_properties(description: ClusterDescription) -> dict[str, str]:
    """Return the properties with which brokers, controllers and the lab log in as CONTROL_USER."""
    users = {CONTROL_USER: description.control_password}
    jaas_config = broker_jaas_config("PLAIN", users, as_user=CONTROL_USER)
    properties = {
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
    }
    for name in (CONTROL_LISTENER.lower(), CONTROLLER_LISTENER.lower()):
        properties[f"listener.name.{name}.sasl.enabled.mechanisms"] = "PLAIN"
        properties[f"listener.name.{name}.plain.sasl.jaas.config"] = jaas_config
    return properties


def _sasl_properties(listener: str, description: ClusterDescription) -> Iterator[tuple[str, str]]:
    oauth = description.spec.oauth
    offered = MECHANISMS if oauth is None else (*MECHANISMS, OAUTHBEARER)
    yield f"listener.name.{listener}.sasl.enabled.mechanisms", ",".join(offered)
    for mechanism in MECHANISMS:
        key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
        yield key, broker_jaas_config(mechanism, description.spec.users)
    if oauth is not None:
        yield from oauth_listener_properties(listener, oauth)


def _tls_properties(spec: ClusterSpec, authority: CertificateAuthority) -> dict[str, str]:
    properties = {
        **_key_store_properties(spec, authority, BROKER_CERTIFICATE),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca_certificate),
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/,DEFAULT",
    }
    for listener in spec.listeners:
        if listener.has_faulty_certificate:
            name, _ = FAULTY_CERTIFICATES[listener]
            for key, value in _key_store_properties(spec, authority, name).items():
                properties[f"listener.name.{listener.value.lower()}.{key}"] = value
    if spec.mutual_tls:
        properties["listener.name.ssl.ssl.client.auth"] = "required"
    return properties


def _key_store_properties(
    spec: ClusterSpec, authority: CertificateAuthority, name: str
) -> dict[str, str]:
    if is_before(spec.version, 3, 9):
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(authority.java_key_store(name)),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.key.password": STORE_PASSWORD,
        }
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.key_store(name)),
    }
