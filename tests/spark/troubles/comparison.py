"""Compares what the surfaces say with what the table promises. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tests.spark.troubles.surfaces import Surfaces
from tests.spark.troubles.trouble import HEALTHY, RUNNING, STARTING, UNHEALTHY, Trouble, has_text

HEALTH_CODES = {STARTING: 503, UNHEALTHY: 500}
OK = 200


def differences(trouble: Trouble, seen: Surfaces) -> list[str]:
    """Return what is not as the table says, one line per surface."""
    return [*_state_differences(trouble, seen), *_text_differences(trouble, seen)]


def lies(trouble: Trouble, seen: Surfaces) -> list[str]:
    """Return what claims that all is well; nothing may while something is stuck."""
    found = []
    if seen.health == HEALTHY:
        found.append("/health is healthy")
    if seen.exit_code == 0:
        found.append("sparkmirror status ends with 0")
    states = {seen.connector_state, *seen.task_states}
    has_remark = trouble.on_connector or trouble.on_task
    if has_remark and states == {RUNNING} and not (seen.connector_trace or seen.task_trace):
        found.append("connector and tasks are RUNNING without a remark")
    return found


def remainders(seen: Surfaces) -> list[str]:
    """Return what is not well yet after the trouble has ended."""
    found = []
    if seen.health != HEALTHY:
        found.append(f"/health is {seen.health}: {seen.health_message}")
    if seen.exit_code:
        found.append(f"sparkmirror status ends with {seen.exit_code}: {seen.status_text}")
    if seen.partition_state and seen.lag != 0:
        found.append(f"the lag is {seen.lag}")
    for text in (seen.connector_trace, seen.task_trace, seen.reason):
        if text:
            found.append(text)
    return found


def _state_differences(trouble: Trouble, seen: Surfaces) -> Iterator[str]:
    tasks = set(filter(None, [trouble.task]))
    expected = (
        ("connector", trouble.connector, seen.connector_state),
        ("tasks", tasks, set(seen.task_states)),
        ("/health", trouble.health, seen.health),
        ("code of /health", HEALTH_CODES.get(trouble.health, OK), seen.health_code),
        ("exit code of status", trouble.exit_code, seen.exit_code),
    )
    for surface, wanted, found in expected:
        if wanted != found:
            yield f"{surface}: {found!r} instead of {wanted!r}"
    if trouble.partition and seen.partition_state not in trouble.partition.split(" or "):
        yield f"partition: {seen.partition_state!r} instead of {trouble.partition!r}"
    if trouble.partition and trouble.knows_lag not in (None, seen.lag is not None):
        yield f"lag: {seen.lag}"


def _text_differences(trouble: Trouble, seen: Surfaces) -> Iterator[str]:
    remark = trouble.remark
    expected = (
        ("connector", trouble.on_connector and remark, seen.connector_trace),
        ("task", trouble.on_task and bool(trouble.task) and remark, seen.task_trace),
        ("partition", trouble.on_partition and bool(trouble.partition) and remark, seen.reason),
        (
            "/health",
            trouble.health != HEALTHY and (trouble.health_message or remark),
            seen.health_message,
        ),
        ("status", remark, seen.status_text),
        ("log", trouble.log or (not trouble.event and remark), seen.log),
        ("events", trouble.event, "\n".join(kind for kind, _ in seen.events)),
        ("log of events", trouble.event and f"WARNING …: {trouble.event}: …", seen.log),
        ("status of events", trouble.event and f"{trouble.event}", seen.status_text),
    )
    for surface, wanted, found in expected:
        if wanted and not has_text(wanted, found):
            yield f"{surface}: {found[-800:]!r} does not have {wanted!r}"
