"""The fields of a KafkaMirrorMaker2 that a properties file cannot express, and why. Pure."""

from __future__ import annotations

from typing import Final

from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields

POD: Final = "belongs to the pod; see deploy/kubernetes"
_JAVA: Final = "belongs to a JVM"
_METRICS: Final = (
    "the worker answers GET /metrics without it; sparkmirror.metrics.listener opens a port for that"
)
_RETRY: Final = "sasl.login.retry.backoff.ms and sasl.login.retry.backoff.max.ms of the cluster"
REASONS: Final = {
    "version": "the mirror has no Kafka version of its own",
    "image": POD,
    "resources": POD,
    "livenessProbe": POD,
    "readinessProbe": POD,
    "template": POD,
    "clientRackInitImage": POD,
    "jvmOptions": _JAVA,
    "jmxOptions": _JAVA,
    "metricsConfig": _METRICS,
    "metrics": _METRICS,
    "logging": "SPARKMIRROR_LOG_LEVELS sets log levels, PUT /admin/loggers/<name> changes one",
    "tracing": "the mirror makes no traces",
    "rack": "write <flow>.consumer.client.rack with the rack of the source",
    "autoRestart": "a task that fails for a passing reason starts again by itself",
    "listOffsets": "GET /connectors/<name>/offsets lists them",
    "alterOffsets": "PATCH /connectors/<name>/offsets changes them",
    "grantType": "the grant type is client_credentials",
    "httpRetries": f"a request for a token is made again: {_RETRY} say when",
    "httpRetryPauseMs": f"a request for a token is made again: {_RETRY} say when",
    "maxTokenExpirySeconds": "sasl.login.refresh.window.factor says when a token is renewed",
    "accessTokenIsJwt": "a token that is no JWT is used too",
    "enableMetrics": "the mirror has no metrics of tokens",
    "includeAcceptHeader": "the header Accept is always sent",
    "clientAssertionType": "the type is urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
}
"""Fields that Strimzi has and a properties file has not, and what to do instead."""
UNKNOWN: Final = "Strimzi has no such field here; check its name and its indentation"


def unread_remarks(fields: ResourceFields, default: str = UNKNOWN) -> list[StrimziRemark]:
    """Return a remark for each field that was not read; `default` is for names without a reason."""
    return [
        StrimziRemark(fields.path_of(name), REASONS.get(name, default)) for name in fields.unread()
    ]
