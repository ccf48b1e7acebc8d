"""Client settings: how each user reaches each listener, in Java's names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import NotFound
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.client_settings import ClientSettings
from sparkmirror.lab.cluster.cluster_setup import (
    create_cluster_directory,
    prepare_cluster,
    reassign_ports,
)
from sparkmirror.lab.cluster.cluster_spec import (
    CONTROL_USER,
    ClusterSpec,
    ListenerProtocol,
    OAuthEndpoints,
)
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import PasswordLogin

SPEC = ClusterSpec(
    name="west",
    brokers=2,
    listeners=tuple(ListenerProtocol),
    mutual_tls=True,
    users={"alice": "alice-secret", "bob": "bob-secret"},
)


@pytest.fixture
def ports(tmp_path: Path) -> PortRegistry:
    return PortRegistry(tmp_path / "registry", free=lambda _: True)


@pytest.fixture
def clients(tmp_path: Path, ports: PortRegistry) -> ClientSettings:
    described = prepare_cluster(SPEC, create_cluster_directory(tmp_path / "west"), ports)
    return ClientSettings(described, CertificateAuthority(described.tls_directory))


def test_plaintext_client_has_only_servers_and_protocol(clients: ClientSettings) -> None:
    properties = clients.properties(ListenerProtocol.PLAINTEXT)
    assert properties.keys() == {"bootstrap.servers", "security.protocol"}
    assert properties["bootstrap.servers"].count("127.0.0.1:") == 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_client_security_reads_every_mechanism(clients: ClientSettings, mechanism: str) -> None:
    security = ClientSecurity.from_properties(
        clients.properties(ListenerProtocol.SASL_SSL, "bob", mechanism)
    )
    assert security.ssl_context is not None
    assert security.login == PasswordLogin(
        mechanism=mechanism, username="bob", password=Password("bob-secret")
    )


def test_default_user_is_the_first(clients: ClientSettings) -> None:
    assert "alice" in clients.properties(ListenerProtocol.SASL_PLAINTEXT)["sasl.jaas.config"]


def test_with_mutual_tls_each_user_has_a_certificate(clients: ClientSettings) -> None:
    properties = {user: clients.properties(ListenerProtocol.SSL, user) for user in SPEC.users}
    key_stores = {user: properties[user]["ssl.keystore.location"] for user in SPEC.users}
    assert len(set(key_stores.values())) == 2
    assert ClientSecurity.from_properties(properties["bob"]).ssl_context is not None


def test_lab_has_its_own_user_and_listener(clients: ClientSettings) -> None:
    admin_access = clients.admin_access()
    login = admin_access.security.current().login
    assert isinstance(login, PasswordLogin)
    assert login.username == CONTROL_USER
    public_listeners = {clients.bootstrap_servers(listener) for listener in ListenerProtocol}
    assert ",".join(map(str, admin_access.bootstrap_servers)) not in public_listeners


def test_error_of_an_unknown_user_names_the_users(clients: ClientSettings) -> None:
    with pytest.raises(NotFound, match="has no user 'zoe': its users are alice, bob"):
        clients.properties(ListenerProtocol.SASL_SSL, "zoe")


def test_reassigned_ports_differ_from_all_earlier_ports(
    tmp_path: Path, ports: PortRegistry
) -> None:
    described = prepare_cluster(
        ClusterSpec(name="west"), create_cluster_directory(tmp_path / "west"), ports
    )
    moved = reassign_ports(described, ports)
    before, after = ({*node.ports.values()} for node in (described.nodes[0], moved.nodes[0]))
    assert not before & after
    assert moved.cluster_id == described.cluster_id


def test_a_token_is_fetched_with_the_credentials_of_the_user(
    tmp_path: Path, ports: PortRegistry
) -> None:
    oauth = OAuthEndpoints(jwks_url="http://localhost:1/jwks", token_url="http://localhost:1/token")
    described = prepare_cluster(
        replace(SPEC, oauth=oauth), create_cluster_directory(tmp_path / "west"), ports
    )
    clients = ClientSettings(described, CertificateAuthority(described.tls_directory))
    properties = clients.properties(ListenerProtocol.SASL_SSL, "bob", "OAUTHBEARER")
    assert properties["sasl.oauthbearer.token.endpoint.url"] == oauth.token_url
    module, _ = jaas.parse_login_module(properties["sasl.jaas.config"])
    assert module.options == {"clientId": "bob", "clientSecret": "bob-secret"}
