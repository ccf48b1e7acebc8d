"""Where a file has the keys that an error of a connection names."""

from __future__ import annotations

from sparkmirror.config.files.client_config_line_numbers import (
    ClientConfigLineNumbers,
    locations_in_environment,
    with_written_keys,
    written_keys_variable,
)
from sparkmirror.config.files.properties import parse_properties

DEDICATED = parse_properties(
    b"""clusters = east, west
east.bootstrap.servers = e:9092
east.sasl.jaas.config = secret
east.producer.sasl.jaas.config = secret
sasl.jaas.config = secret
ssl.truststore.location = /trust
""",
    file="mm2.properties",
)
WORKER = parse_properties(
    b"""bootstrap.servers = w:9092
group.id = connect
sasl.jaas.config = secret
producer.sasl.jaas.config = secret
""",
    file="worker.properties",
)
LOGIN = "login failed; check the password (sasl.jaas.config)"


def test_the_keys_of_a_cluster_are_named_before_those_of_all_clusters() -> None:
    keys = ClientConfigLineNumbers.of_file(DEDICATED)
    assert keys.locations("east", LOGIN) == (
        "mm2.properties, line 3: east.sasl.jaas.config",
        "mm2.properties, line 4: east.producer.sasl.jaas.config",
    )
    assert keys.locations("west", LOGIN) == ("mm2.properties, line 5: sasl.jaas.config",)
    assert keys.locations("west", "check ssl.truststore.location and ssl.truststore.type") == (
        "mm2.properties, line 6: ssl.truststore.location",
    )
    assert keys.locations("west", "connection refused") == ()


def test_the_keys_of_a_flow_are_named_for_the_cluster_whose_clients_they_set() -> None:
    file = parse_properties(
        b"""clusters = east, west
east->west.consumer.sasl.jaas.config = secret
east->west.source.cluster.sasl.jaas.config = secret
east->west.target.producer.sasl.jaas.config = secret
west->east.admin.sasl.jaas.config = secret
north->south.admin.sasl.jaas.config = secret
west.sasl.jaas.config = secret
sasl.jaas.config = secret
""",
        file="mm2.properties",
    )
    keys = ClientConfigLineNumbers.of_file(file)
    assert keys.locations("east", LOGIN) == (
        "mm2.properties, line 2: east->west.consumer.sasl.jaas.config",
        "mm2.properties, line 3: east->west.source.cluster.sasl.jaas.config",
        "mm2.properties, line 5: west->east.admin.sasl.jaas.config",
    )
    assert keys.locations("west", LOGIN) == (
        "mm2.properties, line 2: east->west.consumer.sasl.jaas.config",
        "mm2.properties, line 4: east->west.target.producer.sasl.jaas.config",
        "mm2.properties, line 5: west->east.admin.sasl.jaas.config",
        "mm2.properties, line 7: west.sasl.jaas.config",
    )
    assert keys.locations("other", LOGIN) == ("mm2.properties, line 8: sasl.jaas.config",)


def test_a_workers_file_has_the_keys_of_its_own_clients_only() -> None:
    keys = ClientConfigLineNumbers.of_file(WORKER)
    assert keys.locations("B", LOGIN) == ()
    assert keys.locations("B", LOGIN, "") == ("worker.properties, line 3: sasl.jaas.config",)
    assert keys.locations("B", LOGIN, "producer.") == (
        "worker.properties, line 4: producer.sasl.jaas.config",
    )


def test_the_environment_has_names_and_lines_but_no_values() -> None:
    environment = with_written_keys(DEDICATED, {"HOME": "/h"})
    assert environment["HOME"] == "/h"
    assert "secret" not in str(environment)
    assert "clusters" not in str(environment)
    for_executors = written_keys_variable(environment)
    assert locations_in_environment(for_executors, "west", LOGIN, None) == (
        "mm2.properties, line 5: sasl.jaas.config",
    )
    assert locations_in_environment({}, "west", LOGIN, None) == ()
    assert written_keys_variable({"HOME": "/h"}) == {}
