"""From a request and its plan to the job that the engine runs. Pure."""

from __future__ import annotations

from sparkmirror.cli.copy_plan import CopyPlan
from sparkmirror.cli.copy_request import CopyRequest
from sparkmirror.copy.job import Job, Start
from sparkmirror.copy.settings import Settings


def make_job(request: CopyRequest, plan: CopyPlan) -> Job:
    """Say it as the engine takes it."""
    return Job(
        connector=request.connector,
        group_id=request.group_id,
        settings=_settings(request, len(plan.tasks)),
        offsets_topic=request.offsets_topic.name,
        remote_topics=plan.remote_topics,
        tasks=plan.tasks,
        start=request.start or Start(),
        on_loss=request.on_loss,
    )


def _settings(request: CopyRequest, tasks: int) -> Settings:
    source, target = request.source.expanded, request.target.expanded
    return Settings(
        source_alias=request.flow.source,
        target_alias=request.flow.target,
        source=dict(source),
        target=dict(target),
        read_committed=request.read_committed,
        rack=source.get("client.rack", ""),
        bytes_per_s=_share(request.bytes_per_s, tasks),
    )


def _share(bytes_per_s: int, tasks: int) -> int:
    """Every task keeps to its own limit, so together they keep to the one that was asked for."""
    return max(bytes_per_s // tasks, 1) if bytes_per_s else 0
