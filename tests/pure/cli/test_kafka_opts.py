"""Options for a JVM have no effect, but the port of a metrics agent is kept."""

from __future__ import annotations

import pytest

from sparkmirror.cli.kafka_opts import (
    java_notes,
    metrics_listener,
    with_metrics_listener,
)
from sparkmirror.config.files.properties import parse_properties

KEY = "sparkmirror.metrics.listener"
AGENT = "-javaagent:/opt/jmx-exporter/jmx_prometheus_javaagent-0.19.0.jar"


@pytest.mark.parametrize("name", ["KAFKA_HEAP_OPTS", "EXTRA_ARGS", "KAFKA_OPTS", "KAFKA_JMX_OPTS"])
def test_port_of_the_metrics_agent_is_found(name: str) -> None:
    options = f"-Xmx256m -Xms128M {AGENT}=9404:/opt/jmx-exporter/kafka-2_0_0.yml"
    assert metrics_listener({name: options}) == "http://0.0.0.0:9404"


@pytest.mark.parametrize(
    ("agent", "listener"),
    [
        (f"{AGENT}=127.0.0.1:3600:/etc/a.yml", "http://127.0.0.1:3600"),
        (f"{AGENT}=[::1]:3600:/etc/a.yml", "http://[::1]:3600"),
        (f"{AGENT}=99999:/etc/a.yml", None),
        (f"{AGENT}=/etc/a.yml", None),
        ("-javaagent:/opt/opentelemetry.jar=9404:/etc/a.yml", None),
        ("", None),
    ],
)
def test_listener_of_an_agent(agent: str, listener: str | None) -> None:
    assert metrics_listener({"KAFKA_OPTS": agent}) == listener


def test_each_variable_and_each_agent_has_one_note() -> None:
    options = f"-Xmx1g {AGENT}=9404:/a.yml -javaagent:/opt/opentelemetry.jar"
    notes = java_notes({"KAFKA_HEAP_OPTS": options, "EXTRA_ARGS": options, "JMX_PORT": "9999"})
    assert [note.split()[0] for note in notes[:3]] == ["KAFKA_HEAP_OPTS", "EXTRA_ARGS", "JMX_PORT"]
    port = "http://0.0.0.0:9404"
    assert notes[3:] == (
        "The Java agent /opt/jmx-exporter/jmx_prometheus_javaagent-0.19.0.jar is not loaded.",
        "The Java agent /opt/opentelemetry.jar is not loaded.",
        f"Metrics are served on {port}, the address of the Java agent, unless the file sets {KEY}.",
    )


def test_listener_of_the_environment_is_a_property_that_the_file_may_replace() -> None:
    environment = {"SPARKMIRROR_METRICS_LISTENER": "http://0.0.0.0:9404"}
    file = parse_properties(b"group.id=g\n", file="worker.properties")
    added = with_metrics_listener(file, environment)
    assert added.mapping == {"group.id": "g", KEY: "http://0.0.0.0:9404"}
    assert added.lines == {"group.id": 1}, "no message names a line that the file has not"
    assert with_metrics_listener(file, {}) is file
    agent = {**environment, "KAFKA_OPTS": f"{AGENT}=3600:/a.yml"}
    assert with_metrics_listener(file, agent).mapping[KEY] == "http://0.0.0.0:3600"
    own = parse_properties(f"{KEY}=http://:9999\n".encode(), file="worker.properties")
    assert with_metrics_listener(own, agent) is own


@pytest.mark.parametrize("name", ["KAFKA_LOG4J_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS"])
def test_options_for_log4j_and_for_the_garbage_collector_have_a_note(name: str) -> None:
    (note,) = java_notes({name: "-Dlog4j.configuration=file:/etc/log4j.properties -XX:+UseG1GC"})
    assert note.startswith(f"{name} has no effect: ")


def test_no_variable_no_note() -> None:
    assert java_notes({"PATH": "/bin", "KAFKA_OPTS": ""}) == ()
