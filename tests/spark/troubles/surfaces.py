"""What every surface of a running worker says about one connector and one of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click.testing

from sparkmirror.cli.status import status
from tests.support.cli.mirror_process import MirrorProcess, connector_path
from tests.support.rest.rest_client import RestResponse

WIDE = "250"
"""Columns of a terminal in which each topic has one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The connector that a trouble concerns, and the topic if it concerns one."""

    connector: str
    topic: str = ""
    program: MirrorProcess | None = None
    """The worker that has the trouble, if it is another one."""
    tidy: Callable[[], object] = bool
    """Undoes what ended the trouble, for the next test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaces:
    """One look at all surfaces. The log and the events are those since the trouble began."""

    connector_state: str
    connector_trace: str
    task_states: tuple[str, ...]
    task_trace: str
    health_code: int
    health: str
    health_message: str
    partition_state: str
    """Empty if the subject has no topic or the worker does not show it."""
    reason: str
    lag: int | None
    events: tuple[tuple[str, str], ...]
    """Kind and text of each event of the topic."""
    log: str
    exit_code: int
    status_text: str
    topic_row: str
    """The line of the topic in the output of `sparkmirror status`; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where the log and the events ended when the trouble began."""

    log: int = 0
    events: int = 0


def beginning(program: MirrorProcess, subject: Subject) -> Beginning:
    """Return where log and events end now."""
    look = Look(program)
    return Beginning(log=len(look.log), events=len(look.events(subject)))


def read_surfaces(program: MirrorProcess, subject: Subject, since: Beginning) -> Surfaces:
    """Look at every surface once."""
    return Look(program).surfaces(subject, since)


class Looks:
    """One look at each program: rows that are provoked at the same time share it."""

    def __init__(self) -> None:
        self._looks: dict[MirrorProcess, Look] = {}

    def at(self, program: MirrorProcess) -> Look:
        """Return the look at a program."""
        return self._looks.setdefault(program, Look(program))


class Look:
    """One look at a program: whatever is asked twice is requested once."""

    def __init__(self, program: MirrorProcess) -> None:
        self._program = program
        self._answers: dict[str, RestResponse] = {}

    def surfaces(self, subject: Subject, since: Beginning) -> Surfaces:
        """Return what every surface says about a subject."""
        found = self._answer(f"{connector_path(subject.connector)}/status")
        parts: Any = (
            found.json if found.status == 200 else {"connector": {"state": ""}, "tasks": []}
        )
        health = self._answer("/health")
        partition = self._partition(subject)
        shown = self._status
        row = f"{subject.topic} → "
        return Surfaces(
            connector_state=parts["connector"]["state"],
            connector_trace=parts["connector"].get("trace", ""),
            task_states=tuple(task["state"] for task in parts["tasks"]),
            task_trace="\n".join(task.get("trace", "") for task in parts["tasks"]).strip(),
            health_code=health.status,
            health=health.json["status"],
            health_message=health.json["message"],
            partition_state=partition.get("state", ""),
            reason=partition.get("reason", ""),
            lag=partition.get("lag"),
            events=tuple(
                (event["kind"], event["text"])
                for event in self.events(subject)[since.events :]
                if event["topic"] == subject.topic
            ),
            log=self.log[since.log :],
            exit_code=shown.return_value if isinstance(shown.return_value, int) else 1,
            status_text=shown.output,
            topic_row=next((one for one in shown.output.splitlines() if one.startswith(row)), ""),
        )

    def events(self, subject: Subject) -> list[dict[str, Any]]:
        """Return the events of the subject's connector."""
        answer = self._answer(f"{connector_path(subject.connector)}/events")
        return list(answer.json["events"]) if answer.status == 200 else []

    @cached_property
    def log(self) -> str:
        """All that the program has logged."""
        return self._program.output

    @cached_property
    def _status(self) -> click.testing.Result:
        return click.testing.CliRunner(env={"COLUMNS": WIDE}).invoke(
            status, ["--url", self._program.address], standalone_mode=False
        )

    def _partition(self, subject: Subject) -> dict[str, Any]:
        """Return the first partition of the topic that has a reason, else its first one."""
        answer = self._answer(f"{connector_path(subject.connector)}/partitions")
        shown = answer.json["partitions"] if answer.status == 200 else []
        of_topic = [one for one in shown if one["topic"] == subject.topic]
        return next((one for one in of_topic if one["reason"]), of_topic[0] if of_topic else {})

    def _answer(self, path: str) -> RestResponse:
        if path not in self._answers:
            self._answers[path] = self._program.request("GET", path)
        return self._answers[path]
