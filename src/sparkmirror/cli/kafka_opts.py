"""Variables with options for a JVM: what has no effect, and the port of a metrics agent. Pure.

The commands that run a worker or a mirror use it, in the image and elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sparkmirror.config.files.properties import Properties
from sparkmirror.config.tables.additions import METRICS_LISTENER

METRICS_VARIABLE: Final = "SPARKMIRROR_METRICS_LISTENER"
"""The listener where no agent names one. The image sets it."""
_OPTIONS_OF_JAVA: Final = ("KAFKA_HEAP_OPTS", "EXTRA_ARGS", "KAFKA_JMX_OPTS", "KAFKA_OPTS")
_METRICS_AGENT = re.compile(
    r"-javaagent:\S*?jmx_prometheus_javaagent[^\s=]*="
    r"(?:(?P<host>\[[^\s\]]+\]|[^\s:\[\]]+):)?(?P<port>\d{1,5})(?=[:\s'\"]|$)"
)
_AGENT = re.compile(r"-javaagent:(\S+?)(?==|\s|$)")
_NOTES: Final = {
    "KAFKA_HEAP_OPTS": "has no effect: the worker is not a JVM",
    "EXTRA_ARGS": "has no effect: it has arguments of a JVM",
    "KAFKA_JVM_PERFORMANCE_OPTS": "has no effect: the worker is not a JVM",
    "KAFKA_LOG4J_OPTS": (
        "has no effect: there is no log4j. SPARKMIRROR_LOG_LEVELS and /admin/loggers set log levels"
    ),
    "KAFKA_JMX_OPTS": "has no effect: there is no JMX",
    "JMX_PORT": "has no effect: there is no JMX",
    "KAFKA_OPTS": "counts for its -D options about logins; other options have no effect",
}
_MAX_PORT = 65535


def java_notes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each variable with options for a JVM, and for each Java agent."""
    notes = [f"{name} {_NOTES[name]}." for name in _NOTES if environment.get(name)]
    notes += [f"The Java agent {agent} is not loaded." for agent in _agents(environment)]
    listener = metrics_listener(environment)
    if listener is not None:
        notes.append(
            f"Metrics are served on {listener}, the address of the Java agent, "
            f"unless the file sets {METRICS_LISTENER}."
        )
    return tuple(notes)


def metrics_listener(environment: Mapping[str, str]) -> str | None:
    """Return the URL on which the Prometheus agent of a variable would listen; None without one."""
    for name in _OPTIONS_OF_JAVA:
        found = _METRICS_AGENT.search(environment.get(name, ""))
        if found and 0 < int(found["port"]) <= _MAX_PORT:
            return f"http://{found['host'] or '0.0.0.0'}:{found['port']}"  # noqa: S104 - the agent's default
    return None


def with_metrics_listener(file: Properties, environment: Mapping[str, str]) -> Properties:
    """Return the file with the metrics listener of the environment, unless it has one itself.

    The port of an agent is used rather than `SPARKMIRROR_METRICS_LISTENER`.
    """
    listener = metrics_listener(environment) or environment.get(METRICS_VARIABLE)
    return file.with_default(METRICS_LISTENER, listener) if listener else file


def _agents(environment: Mapping[str, str]) -> list[str]:
    texts = (environment.get(name, "") for name in _OPTIONS_OF_JAVA)
    return list(dict.fromkeys(agent for text in texts for agent in _AGENT.findall(text)))
