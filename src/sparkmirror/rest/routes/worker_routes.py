"""The worker itself: / says who it is, /health how it is doing."""

from __future__ import annotations

from sparkmirror.connect.herder.herder import Herder, WorkerStatus
from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.router import Route

HEALTH = "/health"

_STATUSES = {"healthy": 200, "starting": 503, "unhealthy": 500}
_UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests. "


def worker_routes(herding: Herder) -> tuple[Route, ...]:
    """Make the routes that ask this herding about the worker."""

    def root(_call: Call) -> Reply:
        worker = herding.server_info()
        return json_reply(
            {
                "version": worker.version,
                "commit": worker.commit,
                "kafka_cluster_id": worker.kafka_cluster_id,
            }
        )

    def health(_call: Call) -> Reply:
        return health_reply(herding.health())

    return (
        Route(method="GET", path="/", handler=root),
        Route(method="GET", path=HEALTH, handler=health, urgent=True),
    )


def health_reply(health: WorkerStatus) -> Reply:
    """Show how the worker is doing, in the status too: probes look at nothing else."""
    shown = {"status": health.status, "message": health.message}
    return json_reply(shown, _STATUSES[health.status])


def unhealthy_reply(reason: str) -> Reply:
    """Answer in place of a worker that did not say in time how it is doing."""
    return health_reply(WorkerStatus(status="unhealthy", message=_UNHEALTHY + reason))
