"""Client settings: how each user reaches each listener, in Java's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cluster.security import Security
from sparkmirror.errors import NotFound
from sparkmirror.lab.certificates import Authority
from sparkmirror.lab.clients import Clients
from sparkmirror.lab.creation import describe_new, make_directory, with_other_ports
from sparkmirror.lab.ports import Ports
from sparkmirror.lab.spec import CONTROL_USER, ClusterSpec, Listener

SPEC = ClusterSpec(
    name="west",
    brokers=2,
    listeners=tuple(Listener),
    mutual_tls=True,
    users={"alice": "alice-secret", "bob": "bob-secret"},
)


@pytest.fixture
def ports(tmp_path: Path) -> Ports:
    return Ports(tmp_path / "registry", free=lambda _: True)


@pytest.fixture
def clients(tmp_path: Path, ports: Ports) -> Clients:
    described = describe_new(SPEC, make_directory(tmp_path / "west"), ports)
    return Clients(described, Authority(described.tls_directory))


def test_plaintext_needs_nothing_but_addresses(clients: Clients) -> None:
    properties = clients.properties(Listener.PLAINTEXT)
    assert properties.keys() == {"bootstrap.servers", "security.protocol"}
    assert properties["bootstrap.servers"].count("127.0.0.1:") == 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_our_own_clients_understand_every_login(clients: Clients, mechanism: str) -> None:
    security = Security.from_properties(clients.properties(Listener.SASL_SSL, "bob", mechanism))
    assert security.login is not None
    assert security.tls is not None
    assert (security.login.mechanism, security.login.username) == (mechanism, "bob")
    assert security.login.password.value == "bob-secret"


def test_the_first_user_is_meant_when_none_is_named(clients: Clients) -> None:
    assert "alice" in clients.properties(Listener.SASL_PLAINTEXT)["sasl.jaas.config"]


def test_with_mutual_tls_each_user_shows_a_certificate(clients: Clients) -> None:
    shown = {user: clients.properties(Listener.SSL, user) for user in SPEC.users}
    places = {user: shown[user]["ssl.keystore.location"] for user in SPEC.users}
    assert len(set(places.values())) == 2
    assert Security.from_properties(shown["bob"]).tls is not None


def test_the_lab_has_its_own_way_in(clients: Clients) -> None:
    own = clients.own_access()
    assert own.security.login is not None
    assert own.security.login.username == CONTROL_USER
    open_to_all = {clients.bootstrap(listener) for listener in Listener}
    assert ",".join(map(str, own.bootstrap)) not in open_to_all


def test_an_unknown_user_is_an_error(clients: Clients) -> None:
    with pytest.raises(NotFound, match="has no user 'zoe': its users are alice, bob"):
        clients.properties(Listener.SASL_SSL, "zoe")


def test_other_ports_are_really_other_ports(tmp_path: Path, ports: Ports) -> None:
    described = describe_new(ClusterSpec(name="west"), make_directory(tmp_path / "west"), ports)
    moved = with_other_ports(described, ports)
    before, after = ({*node.ports.values()} for node in (described.nodes[0], moved.nodes[0]))
    assert not before & after
    assert moved.cluster_id == described.cluster_id
