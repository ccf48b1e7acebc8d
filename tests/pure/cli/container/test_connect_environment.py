"""`CONNECT_*` variables become the properties that Confluent's image would write."""

from __future__ import annotations

import pytest

from sparkmirror.cli.container.connect_environment import (
    ConnectEnvironment,
    property_name,
    variable_name,
    worker_properties_text,
)
from sparkmirror.config.files.properties import parse_properties


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("CONNECT_REST_PORT", "rest.port"),
        ("CONNECT_REST_ADVERTISED_HOST_NAME", "rest.advertised.host.name"),
        ("CONNECT_OFFSET__SYNCS_TOPIC_LOCATION", "offset-syncs.topic.location"),
        ("CONNECT_CONFIG_PROVIDERS_A___B_CLASS", "config.providers.a_b.class"),
        (
            "CONNECT_connector_client_config_override_policy",
            "connector.client.config.override.policy",
        ),
    ],
)
def test_underscores_become_dots_dashes_and_underscores(variable: str, key: str) -> None:
    assert property_name(variable) == key
    assert property_name(variable_name(key)) == key


def rendered(environment: dict[str, str]) -> dict[str, str]:
    """The properties that a worker reads from the written file."""
    text = worker_properties_text(ConnectEnvironment.of(environment))
    return parse_properties(text.encode("ascii"), file="f").mapping


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ('"quickstart"', '"quickstart"'),
        ("a=b:c # d", "a=b:c # d"),
        ("required \\\n  username=u;", "required username=u;"),
        ("-----BEGIN\nabc\n-----END\n", "-----BEGIN\nabc\n-----END"),
        ("C:\\\\certs", "C:\\certs"),
        ("C:\\\\certs\\", "C:\\certs\\"),
        ("a\rb", "a\rb"),
        ("prüfung-\U0001f600", "prüfung-\U0001f600"),
        ("", ""),
    ],
)
def test_value_reaches_the_worker(value: str, read: str) -> None:
    assert rendered({"CONNECT_GROUP_ID": value, "PATH": "/bin"}) == {
        "group.id": read,
        "plugin.path": "/usr/share/java/,/usr/share/confluent-hub-components/",
    }


def test_variable_replaces_the_plugin_path() -> None:
    assert rendered({"CONNECT_PLUGIN_PATH": "/plugins"}) == {"plugin.path": "/plugins"}


def test_variables_of_a_kubernetes_service_are_no_properties() -> None:
    found = ConnectEnvironment.of(
        {
            "CONNECT_PORT": "tcp://10.0.0.1:8083",
            "CONNECT_SERVICE_HOST": "10.0.0.1",
            "CONNECT_SERVICE_PORT_REST": "8083",
            "CONNECT_PORT_8083_TCP_PROTO": "tcp",
            "CONNECT_WEST_PORT_8083_TCP": "tcp://10.0.0.2:8083",
        }
    )
    assert found.properties == {}
    (note,) = found.notes
    assert "CONNECT_WEST_PORT_8083_TCP" in note


def test_a_rest_port_is_no_service_variable() -> None:
    assert ConnectEnvironment.of({"CONNECT_REST_PORT": "28082"}).properties == {
        "rest.port": "28082"
    }


def test_settings_of_confluents_own_programs_are_noted() -> None:
    found = ConnectEnvironment.of(
        {
            "CONNECT_CUB_KAFKA_TIMEOUT": "60",
            "CONNECT_LOG4J_APPENDER_STDOUT_LAYOUT_CONVERSIONPATTERN": "%m",
        }
    )
    assert found.properties == {}
    assert [note.partition(" ")[0] for note in found.notes] == [
        "CONNECT_CUB_KAFKA_TIMEOUT",
        "CONNECT_LOG4J_APPENDER_STDOUT_LAYOUT_CONVERSIONPATTERN",
    ]


@pytest.mark.parametrize(
    ("root", "loggers", "levels"),
    [
        ("DEBUG", "org.apache.kafka=WARN,a.b=INFO", "root=DEBUG,org.apache.kafka=WARN,a.b=INFO"),
        ("DEBUG", None, "root=DEBUG"),
        (None, "org.apache.kafka=WARN", "org.apache.kafka=WARN"),
        ("", "", ""),
    ],
)
def test_log_levels_are_those_of_confluents_variables(
    root: str | None, loggers: str | None, levels: str
) -> None:
    given = {"CONNECT_LOG4J_ROOT_LOGLEVEL": root, "CONNECT_LOG4J_LOGGERS": loggers}
    found = ConnectEnvironment.of({name: text for name, text in given.items() if text is not None})
    assert found.log_levels == levels
    assert (found.properties, found.notes) == ({}, ())


def test_missing_variables_are_named_as_variables() -> None:
    found = ConnectEnvironment.of(
        {"CONNECT_BOOTSTRAP_SERVERS": "b:9092", "CONNECT_GROUP_ID": "", "CONNECT_REST_PORT": "1"}
    )
    assert found.missing_variables == (
        "CONNECT_GROUP_ID",
        "CONNECT_CONFIG_STORAGE_TOPIC",
        "CONNECT_OFFSET_STORAGE_TOPIC",
        "CONNECT_STATUS_STORAGE_TOPIC",
        "CONNECT_KEY_CONVERTER",
        "CONNECT_VALUE_CONVERTER",
    )


def test_repr_shows_no_value() -> None:
    assert "s3cret" not in repr(ConnectEnvironment.of({"CONNECT_SASL_JAAS_CONFIG": "s3cret"}))
