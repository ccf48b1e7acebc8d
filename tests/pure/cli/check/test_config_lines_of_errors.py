"""Where the file has the keys that an error names."""

from __future__ import annotations

import pytest

from sparkmirror.cli.check.config_lines_of_errors import add_written_keys
from sparkmirror.cli.check.connection_check import ConnectionCheck
from sparkmirror.config.files.properties import parse_properties

FILE = parse_properties(
    b"""clusters = east, west
east.bootstrap.servers = e:9092
east.sasl.jaas.config = secret
east.producer.sasl.jaas.config = secret
ssl.truststore.location = /trust
west.sasl.jaas.config = secret
""",
    file="mm2.properties",
)


def remarks(error: str) -> tuple[str, ...]:
    check = ConnectionCheck(cluster="east", clients=(), bootstrap_servers="e:9092", error=error)
    (found,) = add_written_keys([check], FILE)
    return found.remarks


def test_a_key_of_the_cluster_or_of_all_clusters_is_named_with_its_line() -> None:
    assert remarks("east: login failed; check the password (sasl.jaas.config)") == (
        "mm2.properties, line 3: east.sasl.jaas.config",
        "mm2.properties, line 4: east.producer.sasl.jaas.config",
    )
    assert remarks("east: check ssl.truststore.location or ssl.truststore.certificates") == (
        "mm2.properties, line 5: ssl.truststore.location",
    )


def test_a_connection_without_an_error_has_no_remark() -> None:
    assert remarks("") == ()


@pytest.mark.parametrize(
    ("cluster", "client", "line"),
    [
        ("the worker's cluster", "the worker", "worker.properties, line 2: sasl.jaas.config"),
        (
            "B",
            "A->B c: producer of the worker",
            "worker.properties, line 3: producer.sasl.jaas.config",
        ),
        ("B", "A->B c: target admin", ""),
    ],
)
def test_only_clients_of_the_worker_have_keys_in_its_file(
    cluster: str, client: str, line: str
) -> None:
    file = parse_properties(
        b"group.id = g\nsasl.jaas.config = x\nproducer.sasl.jaas.config = x\n",
        file="worker.properties",
    )
    check = ConnectionCheck(
        cluster=cluster, clients=(client,), bootstrap_servers="b:1", error="check sasl.jaas.config"
    )
    (found,) = add_written_keys([check], file)
    assert found.remarks == ((line,) if line else ())
