"""The server.properties of each node of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.secrets import jaas
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.cluster_spec import (
    CONTROL_USER,
    ClusterSpec,
    ListenerProtocol,
    OAuthEndpoints,
)
from sparkmirror.lab.cluster.node_listeners import allocate_nodes
from sparkmirror.lab.cluster.sasl_config import broker_jaas_config, client_jaas_config
from sparkmirror.lab.cluster.server_properties import server_properties

DIRECTORY = Path("/labs/west")


def described(spec: ClusterSpec) -> ClusterDescription:
    """Describe a cluster whose ports count up from 20000."""
    return ClusterDescription(
        spec=spec,
        directory=DIRECTORY,
        cluster_id="Y2x1c3Rlci1vZi10ZXN0cw",
        nodes=allocate_nodes(spec, lambda count: list(range(20000, 20000 + count))),
        control_password="control-secret",
        zookeeper_port=19999 if spec.has_zookeeper else None,
    )


def properties(spec: ClusterSpec, number: int = 1) -> dict[str, str]:
    cluster = described(spec)
    authority = CertificateAuthority(cluster.tls_directory)
    return server_properties(cluster, cluster.nodes[number - 1], DIRECTORY / "data", authority)


def test_one_plain_broker_is_its_own_controller() -> None:
    found = properties(ClusterSpec(name="west"))
    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:20000,CONTROLLER://127.0.0.1:20001"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20000"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20001"
    assert found["inter.broker.listener.name"] == "PLAINTEXT"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert found["offsets.topic.replication.factor"] == "1"
    assert found["transaction.state.log.min.isr"] == "1"
    assert not [key for key in found if key.startswith(("sasl", "ssl", "listener.name"))]


def test_a_listener_may_be_advertised_with_another_address() -> None:
    spec = ClusterSpec(
        name="west",
        listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SSL),
        advertised={"PLAINTEXT": "proxy:9092"},
    )
    found = properties(spec)
    assert found["advertised.listeners"] == (
        "PLAINTEXT://proxy:9092,SSL://127.0.0.1:20001,CONTROL://127.0.0.1:20002"
    )
    assert found["listeners"].startswith("PLAINTEXT://127.0.0.1:20000,")
    assert ClusterSpec.from_json(spec.to_json()) == spec


def test_three_of_five_brokers_are_controllers() -> None:
    spec = ClusterSpec(name="west", brokers=5)
    roles = [properties(spec, number)["process.roles"] for number in range(1, 6)]
    assert roles == ["broker,controller"] * 3 + ["broker"] * 2
    last = properties(spec, 5)
    assert last["listeners"] == last["advertised.listeners"]
    assert last["controller.quorum.voters"].startswith("1@")
    assert last["controller.quorum.voters"].count("@") == 3
    assert last["offsets.topic.replication.factor"] == "3"
    assert last["transaction.state.log.min.isr"] == "2"


def test_brokers_of_an_old_version_register_in_zookeeper_and_have_no_controller() -> None:
    spec = ClusterSpec(name="west", version="2.8.2", brokers=3, authorizer=True)
    found = properties(spec, 2)
    assert found["broker.id"] == "2"
    assert found["zookeeper.connect"] == "127.0.0.1:19999"
    assert found["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:20002,CONTROL://127.0.0.1:20003"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,CONTROL:SASL_PLAINTEXT"
    assert not {"node.id", "process.roles", "controller.quorum.voters"} & found.keys()


def test_every_listener_of_every_node_has_its_own_port() -> None:
    users = {"alice": "x"}
    spec = ClusterSpec(name="west", brokers=4, listeners=tuple(ListenerProtocol), users=users)
    listeners = len(ListenerProtocol) + 1
    ports = [port for node in described(spec).nodes for port in node.ports.values()]
    assert len(ports) == len(set(ports)) == 4 * listeners + 3


def test_with_an_authorizer_the_lab_user_is_a_super_user_and_anonymous_is_not() -> None:
    users = {"alice": "x", "bob": "y"}
    spec = ClusterSpec(name="west", authorizer=True, users=users, super_users=("bob",))
    found = properties(spec)
    assert found["super.users"] == f"User:{CONTROL_USER};User:bob"
    assert found["inter.broker.listener.name"] == "CONTROL"
    assert "CONTROL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT" in str(
        found["listener.security.protocol.map"]
    )
    (module,) = jaas.parse_jaas_config(found["listener.name.control.plain.sasl.jaas.config"])
    assert module.options == {
        "username": CONTROL_USER,
        "password": "control-secret",
        f"user_{CONTROL_USER}": "control-secret",
    }
    assert "ANONYMOUS" not in str(found)


def test_sasl_listener_has_three_mechanisms() -> None:
    spec = ClusterSpec(name="west", listeners=(ListenerProtocol.SASL_SSL,), users={"alice": "x"})
    found = properties(spec)
    offered = found["listener.name.sasl_ssl.sasl.enabled.mechanisms"]
    assert offered == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    (plain,) = jaas.parse_jaas_config(found["listener.name.sasl_ssl.plain.sasl.jaas.config"])
    assert plain.options == {"user_alice": "x"}
    (scram,) = jaas.parse_jaas_config(
        found["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"]
    )
    assert scram.options == {}
    assert CONTROL_USER not in found["listener.name.sasl_ssl.plain.sasl.jaas.config"]


def test_with_an_oauth_server_sasl_listeners_accept_its_tokens_too() -> None:
    oauth = OAuthEndpoints(jwks_url="http://localhost:1/jwks", token_url="http://localhost:1/token")
    spec = ClusterSpec(
        name="west", listeners=(ListenerProtocol.SASL_SSL,), users={"alice": "x"}, oauth=oauth
    )
    found = properties(spec)
    offered = found["listener.name.sasl_ssl.sasl.enabled.mechanisms"]
    assert offered == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    prefix = "listener.name.sasl_ssl.oauthbearer"
    (module,) = jaas.parse_jaas_config(found[f"{prefix}.sasl.jaas.config"])
    assert module.options == {}
    assert found[f"{prefix}.sasl.server.callback.handler.class"].endswith(
        "ValidatorCallbackHandler"
    )
    assert found["sasl.oauthbearer.jwks.endpoint.url"] == oauth.jwks_url
    assert found["sasl.oauthbearer.expected.audience"] == "kafka"
    assert ClusterSpec.from_json(spec.to_json()) == spec


def test_only_the_listeners_for_it_have_a_faulty_certificate() -> None:
    listeners = (
        ListenerProtocol.SSL,
        ListenerProtocol.SSL_EXPIRED,
        ListenerProtocol.SSL_OTHER_HOST,
    )
    found = properties(ClusterSpec(name="west", listeners=listeners))
    assert "SSL_EXPIRED:SSL,SSL_OTHER_HOST:SSL" in found["listener.security.protocol.map"]
    certificates = {
        found["ssl.keystore.location"],
        found["listener.name.ssl_expired.ssl.keystore.location"],
        found["listener.name.ssl_other_host.ssl.keystore.location"],
    }
    assert len(certificates) == 3
    assert "listener.name.ssl.ssl.keystore.location" not in found


@pytest.mark.parametrize("mutual", [True, False])
def test_mutual_tls_requires_client_certificates(mutual: bool) -> None:
    spec = ClusterSpec(
        name="west", listeners=(ListenerProtocol.SSL,), users={"alice": "x"}, mutual_tls=mutual
    )
    found = properties(spec)
    assert found["ssl.keystore.location"] == str(DIRECTORY / "tls" / "broker.pem")
    assert ("listener.name.ssl.ssl.client.auth" in found) is mutual


def test_properties_of_the_spec_override_those_of_the_lab() -> None:
    found = properties(ClusterSpec(name="west", properties={"offsets.topic.num.partitions": "50"}))
    assert found["offsets.topic.num.partitions"] == "50"


@pytest.mark.parametrize("version", ["4.3.1", "2.8.2"])
def test_description_is_read_from_its_json_and_repr_contains_no_password(version: str) -> None:
    cluster = described(ClusterSpec(name="west", brokers=2, authorizer=True, version=version))
    assert ClusterDescription.from_json(cluster.to_json()) == cluster
    assert "control-secret" not in repr(cluster)


@pytest.mark.parametrize("secret", ['qu"ote', "back\\slash", "two words", "semi;colon", "=", "ä'"])
def test_jaas_config_keeps_special_characters_of_a_password(secret: str) -> None:
    module, _ = jaas.parse_login_module(client_jaas_config("PLAIN", "alice", secret))
    assert module.options == {"username": "alice", "password": secret}
    (line,) = jaas.parse_jaas_config(
        broker_jaas_config("PLAIN", {"alice": secret, "bob": "b"}, as_user="alice")
    )
    assert line.options["user_alice"] == line.options["password"] == secret


def test_brokers_are_assigned_to_racks_round_robin() -> None:
    spec = ClusterSpec(name="west", brokers=3, racks=("north", "south"))
    racks = [properties(spec, number)["broker.rack"] for number in (1, 2, 3)]
    assert racks == ["north", "south", "north"]
    assert ClusterSpec.from_json(spec.to_json()) == spec
    assert "broker.rack" not in properties(ClusterSpec(name="east"))
