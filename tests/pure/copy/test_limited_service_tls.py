"""The stand-in with TLS, under a host name of the internet, as whole programs see it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from tests.support.kafka.fake_broker import answering_broker
from tests.support.kafka.limited_service import LimitedService
from tests.support.kafka.local_hosts import local_hosts_environment
from tests.support.security.host_certificate import issue_host_certificate

HOST = "namespace.servicebus.windows.net"
CONNECT = """
import sys
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.wire.net.connection import BrokerConnection
properties = {"bootstrap.servers": sys.argv[1], "security.protocol": "SSL"}
access = ClusterAccess.from_properties("target", properties)
connection = BrokerConnection.open(access.client_config("test"), access.bootstrap_servers[0])
print(connection.api_versions.ranges[0])
connection.close()
"""


def _connect(
    service: LimitedService, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CONNECT, f"{HOST}:{service.port}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_program_takes_the_host_name_for_this_computer_and_verifies_the_certificate(
    tmp_path: Path,
) -> None:
    authority = CertificateAuthority.create(tmp_path / "tls")
    hosts = dict(local_hosts_environment((HOST,), tmp_path / "hosts"))
    with (
        answering_broker({}, ranges={0: (3, 9), 18: (0, 4)}) as broker,
        LimitedService(certificate=issue_host_certificate(authority, HOST)) as service,
    ):
        service.forward_to(broker.address)
        trusting = _connect(service, hosts | {"SSL_CERT_FILE": str(authority.ca_certificate)})
        assert (trusting.stdout, trusting.returncode) == ("(3, 7)\n", 0), trusting.stderr
        assert "certificate" in _connect(service, hosts).stderr
