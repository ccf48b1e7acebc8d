"""GSSAPI on a real listener: a KDC, a broker with a keytab, and clients with tickets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import describe_topics
from sparkmirror.errors import NotAuthorized
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.properties_file import write_properties
from tests.support.kafka.clusters import StartCluster
from tests.support.security.kdc import REALM, Kdc, missing_programs, running_kdc

pytestmark = pytest.mark.skipif(
    bool(missing_programs()),
    reason=f"no KDC here: {', '.join(missing_programs())} missing (Debian: krb5-kdc,"
    " krb5-admin-server, krb5-user)",
)
needs_gssapi = pytest.mark.skipif(
    find_spec("gssapi") is None, reason="the extra kerberos is not installed"
)
LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    directory = tmp_path_factory.mktemp("kerberos")
    [port] = PortRegistry().claim(1, directory)
    with running_kdc(directory / "kdc", port) as running:
        yield running


@pytest.fixture(scope="module")
def kerberos_cluster(kdc: Kdc, start_module_cluster: StartCluster) -> Cluster:
    """One broker that accepts tickets on SASL_PLAINTEXT."""
    service = "kafka/localhost"  # Kerberos looks up the name of a broker's address
    listener = "listener.name.sasl_plaintext"
    keytab = kdc.add_principal(service)
    return start_module_cluster(
        ClusterSpec(
            name="kerberos",
            fast_start=True,
            listeners=(ListenerProtocol.SASL_PLAINTEXT,),
            users={"unused": "unused"},
            jvm_options=(f"-Djava.security.krb5.conf={kdc.krb5_conf}",),
            properties={
                f"{listener}.sasl.enabled.mechanisms": "GSSAPI,PLAIN,SCRAM-SHA-512",
                f"{listener}.sasl.kerberos.service.name": "kafka",
                f"{listener}.gssapi.sasl.jaas.config": _jaas_config(keytab, service),
            },
        )
    )


@pytest.fixture(scope="module")
def client_properties(kdc: Kdc, kerberos_cluster: Cluster) -> dict[str, str]:
    """The settings of a client with a keytab, in Java's names."""
    return {
        "bootstrap.servers": kerberos_cluster.bootstrap_servers(),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": _jaas_config(kdc.add_principal("mirror"), "mirror"),
    }


def _jaas_config(keytab: Path, principal: str) -> str:
    return f'{LOGIN_MODULE} keyTab="{keytab}" principal="{principal}@{REALM}";'


def test_kafkas_own_tools_log_in_with_a_ticket(
    kdc: Kdc, client_properties: dict[str, str], tmp_path: Path
) -> None:
    config = write_properties(tmp_path / "client.properties", client_properties)
    options = JvmOptions(extra_options=(f"-Djava.security.krb5.conf={kdc.krb5_conf}",))
    servers = client_properties["bootstrap.servers"]
    arguments = ["--bootstrap-server", servers, "--command-config", str(config), "--list"]
    KafkaToolRunner(jvm=options).run("kafka-topics", arguments, timeout_s=180)


@needs_gssapi
def test_our_clients_log_in_with_the_ticket_of_a_keytab(
    kdc: Kdc, client_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.krb5_conf))
    access = ClusterAccess.from_properties("kerberos", client_properties)
    with closing(access.new_router()) as router:
        assert isinstance(describe_topics(router), dict)


@needs_gssapi
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mirror@", "other@"), r"ticket of other@.*check that the keytab has a key of it"),
        (("mirror.keytab", "missing.keytab"), r"the keytab .*missing\.keytab cannot be read"),
    ],
    ids=["principal", "keytab"],
)
def test_a_ticket_that_cannot_be_had_is_refused_with_the_reason(
    kdc: Kdc,
    client_properties: dict[str, str],
    change: tuple[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.krb5_conf))
    changed = client_properties["sasl.jaas.config"].replace(*change)
    access = ClusterAccess.from_properties(
        "kerberos", {**client_properties, "sasl.jaas.config": changed}
    )
    with closing(access.new_router()) as router, pytest.raises(NotAuthorized, match=message):
        describe_topics(router)
