"""The fields of a KafkaMirrorMaker2 that a properties file cannot express, and why. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from sparkmirror.cli.strimzi.resource_fields import ResourceFields

_POD: Final = "belongs to the pod; see deploy/kubernetes"
_JAVA: Final = "belongs to a JVM"
REASONS: Final = {
    "version": "the mirror has no Kafka version of its own",
    "image": _POD,
    "resources": _POD,
    "livenessProbe": _POD,
    "readinessProbe": _POD,
    "template": _POD,
    "externalConfiguration": _POD,
    "clientRackInitImage": _POD,
    "jvmOptions": _JAVA,
    "jmxOptions": _JAVA,
    "metricsConfig": _JAVA,
    "metrics": _JAVA,
    "logging": "PUT /admin/loggers/<name> changes the level of a logger",
    "tracing": "the mirror makes no traces",
    "rack": "write <flow>.consumer.client.rack with the rack of the source",
    "state": "the connector starts: PUT /connectors/<name>/pause or /stop after the start",
    "pause": "the connector starts: PUT /connectors/<name>/pause after the start",
    "autoRestart": "a task that fails for a passing reason starts again by itself",
    "listOffsets": "GET /connectors/<name>/offsets lists them",
    "alterOffsets": "PATCH /connectors/<name>/offsets changes them",
}
"""Fields that Strimzi has and a properties file has not, and what to do instead."""
UNKNOWN: Final = "Strimzi has no such field here; check its name and its indentation"


class StrimziRemark(NamedTuple):
    """A field that was left out or guessed."""

    field: str
    text: str


def unread_remarks(fields: ResourceFields) -> list[StrimziRemark]:
    """Return a remark for each field that was not read."""
    return [
        StrimziRemark(fields.path_of(name), REASONS.get(name, UNKNOWN)) for name in fields.unread()
    ]
