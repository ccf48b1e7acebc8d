"""GSSAPI on a real listener: a KDC, a broker with a keytab, and clients with tickets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
