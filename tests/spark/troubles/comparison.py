"""Compares what the surfaces say with what the table promises. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial

from sparkmirror.cli.worker_live_view import BAR_WIDTH
from tests.spark.troubles.surfaces import Surfaces
from tests.spark.troubles.trouble import (
    DEGRADED,
    HEALTHY,
    RUNNING,
    STARTING,
    UNHEALTHY,
    Trouble,
    found_text,
    has_text,
)

HEALTH_CODES = {STARTING: 503, UNHEALTHY: 500}
OK = 200
FULL_BAR = "━" * BAR_WIDTH
LOG_LINE = re.compile(r" ((?:WARN|ERROR) .*)")
REPEATS = re.compile(r" \(and [^)]* more since it was last logged\)")
EVENT_LINE = re.compile(r"\d{4}-\d\d-\d\d ")
MORE_PROBLEMS = re.compile(r"\(and \d+ more\)$")
MAX_REPEATS = 4
"""A line that repeats is written at once, after 10 s, after 40 s, and after 130 s."""


def differences(trouble: Trouble, seen: Surfaces, others: Collection[Trouble] = ()) -> list[str]:
    """Return what is not as the table says, one line per surface.

    `others` are provoked at the same time.
    """
    return [
        *_state_differences(trouble, seen),
        *_text_differences(trouble, seen),
        *_health_differences(trouble, seen, others),
    ]


def lies(trouble: Trouble, seen: Surfaces) -> list[str]:
    """Return what claims that all is well; nothing may while something is stuck.

    An unknown lag claims nothing. A lag of 0 is true if everything was copied before a cluster went
    down. The topic's line then has no full bar, and it is not done.
    """
    found = [] if seen.lag is None else list(_lag_differences(trouble, seen))
    if seen.health == HEALTHY:
        found.append("/health is healthy")
    if seen.exit_code == 0:
        found.append("sparkmirror status ends with 0")
    states = {seen.connector_state, *seen.task_states}
    has_remark = trouble.on_connector or trouble.on_task
    if has_remark and states == {RUNNING} and not (seen.connector_trace or seen.task_trace):
        found.append("connector and tasks are RUNNING without a remark")
    if trouble.on_partition and ("done" in seen.topic_row or FULL_BAR in seen.topic_row):
        found.append(f"the topic looks finished: {seen.topic_row}")
    return found


def traces(trouble: Trouble, seen: Surfaces) -> list[str]:
    """Return each surface that still has the remark."""
    surfaces = (
        ("connector", seen.connector_trace),
        ("task", seen.task_trace),
        ("partition", seen.reason),
        ("/health", seen.health_message),
        ("status", seen.status_text),
    )
    return [f"{name}: {text}" for name, text in surfaces if has_text(trouble.remark, text)]


def flooding_lines(log: str) -> list[str]:
    """Return the warnings and errors that are in a log more than MAX_REPEATS times."""
    found = (LOG_LINE.search(line) for line in log.splitlines())
    counts = Counter(REPEATS.sub("", line[1]) for line in found if line)
    return [f"{count} times: {line}" for line, count in counts.items() if count > MAX_REPEATS]


def remainders(seen: Surfaces) -> list[str]:
    """Return what is not well yet after all troubles have ended."""
    found = connector_remainders(seen)
    if seen.health != HEALTHY:
        found.append(f"/health is {seen.health}: {seen.health_message}")
    if seen.exit_code:
        found.append(f"sparkmirror status ends with {seen.exit_code}: {seen.status_text}")
    return found


def connector_remainders(seen: Surfaces) -> list[str]:
    """Return what is not well yet with the connector after its trouble has ended."""
    found = []
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
    yield from _lag_differences(trouble, seen)


def _lag_differences(trouble: Trouble, seen: Surfaces) -> Iterator[str]:
    if not trouble.partition:
        return
    is_known = seen.lag is not None
    if trouble.knows_lag not in (None, is_known):
        yield f"lag: {seen.lag} instead of {'a number' if trouble.knows_lag else None}"
    if seen.lag is not None and seen.lag < trouble.least_lag:
        yield f"lag: {seen.lag} instead of at least {trouble.least_lag}"


def _text_differences(trouble: Trouble, seen: Surfaces) -> Iterator[str]:
    remark = trouble.remark
    expected = (
        ("connector", trouble.on_connector and remark, seen.connector_trace),
        ("task", trouble.on_task and bool(trouble.task) and remark, seen.task_trace),
        ("partition", trouble.on_partition and bool(trouble.partition) and remark, seen.reason),
        ("status", remark, seen.status_text),
        ("log", trouble.log or (not trouble.event and remark), seen.log),
        ("events", trouble.event, "\n".join(kind for kind, _ in seen.events)),
        ("log of events", trouble.event and f"WARN …: {trouble.event}: …", seen.log),
        ("status of events", trouble.event and f"{trouble.event}", seen.status_text),
    )
    for surface, wanted, found in expected:
        if wanted and not has_text(wanted, found):
            yield f"{surface}: {found[-800:]!r} does not have {wanted!r}"
    if remark:
        counts = Counter(map(partial(found_text, remark), _problem_lines(seen.status_text)))
        yield from (
            f"status: the same reason {count} times: {text}"
            for text, count in counts.items()
            if text and count > 1
        )


def _health_differences(
    trouble: Trouble, seen: Surfaces, others: Collection[Trouble]
) -> Iterator[str]:
    """A degraded one has the first problem and counts the others. The worker's come first."""
    if trouble.health == HEALTHY:
        return
    shown = [trouble] if trouble.is_of_worker else [trouble, *others]
    texts = [one.health_message or one.remark for one in shown]
    if not any(has_text(text, seen.health_message) for text in texts):
        yield f"/health: {seen.health_message!r} does not have {' or '.join(texts)!r}"
    is_counted = trouble.health == DEGRADED and not trouble.is_of_worker
    if others and is_counted and not MORE_PROBLEMS.search(seen.health_message):
        yield f"/health: {seen.health_message!r} does not count the other problems"


def _problem_lines(status_text: str) -> list[str]:
    """Return the lines of `sparkmirror status` without those of events, which begin with a time."""
    return [line for line in status_text.splitlines() if not EVENT_LINE.match(line)]
