"""Everything under /connectors."""

from __future__ import annotations

import re

from sparkmirror.connect.herding import Config, Herding, Put
from sparkmirror.errors import BadRequest, NotFound, RequestFailed
from sparkmirror.mirror.connect_json import JsonValue
from sparkmirror.rest import bodies, shapes
from sparkmirror.rest.exchange import Call, Reply, error_reply, json_reply
from sparkmirror.rest.path import quoted
from sparkmirror.rest.route import Route

_NAME = "name"
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_LARGEST_INT = 2**31 - 1


def connector_routes(herding: Herding) -> tuple[Route, ...]:
    """Make the routes that ask this herding about its connectors."""
    ask = _Connectors(herding)
    one = "/connectors/{connector}"
    return (
        Route(method="GET", path="/connectors", handler=ask.list),
        Route(method="POST", path="/connectors", handler=ask.create, reads_body=True),
        Route(method="GET", path=one, handler=ask.info),
        Route(method="DELETE", path=one, handler=ask.delete),
        Route(method="GET", path=f"{one}/config", handler=ask.config),
        Route(method="PUT", path=f"{one}/config", handler=ask.put_config, reads_body=True),
        Route(method="PATCH", path=f"{one}/config", handler=ask.patch_config, reads_body=True),
        Route(method="GET", path=f"{one}/status", handler=ask.status),
        Route(method="PUT", path=f"{one}/pause", handler=ask.pause),
        Route(method="PUT", path=f"{one}/resume", handler=ask.resume),
        Route(method="PUT", path=f"{one}/stop", handler=ask.stop),
        Route(method="POST", path=f"{one}/restart", handler=ask.restart),
        Route(method="GET", path=f"{one}/tasks", handler=ask.tasks),
        Route(method="GET", path=f"{one}/tasks/{{task}}/status", handler=ask.task_status),
        Route(method="POST", path=f"{one}/tasks/{{task}}/restart", handler=ask.restart_task),
        Route(method="GET", path=f"{one}/topics", handler=ask.topics),
        Route(method="PUT", path=f"{one}/topics/reset", handler=ask.reset_topics),
        Route(method="GET", path=f"{one}/offsets", handler=ask.offsets),
        Route(method="PATCH", path=f"{one}/offsets", handler=ask.alter_offsets, reads_body=True),
        Route(method="DELETE", path=f"{one}/offsets", handler=ask.reset_offsets),
    )


class _Connectors:
    def __init__(self, herding: Herding) -> None:
        self._herding = herding

    def list(self, call: Call) -> Reply:
        names = self._herding.connectors()
        if "expand" not in call.query:
            return json_reply(names)
        shown: dict[str, JsonValue] = {}
        for name in names:
            try:
                shown[name] = self._expanded(name, call)
            except NotFound:
                continue  # deleted since the names were asked for, or not started yet
        return json_reply(shown)

    def _expanded(self, name: str, call: Call) -> JsonValue:
        members: dict[str, JsonValue] = {}
        for wish in call.query["expand"]:
            if wish == "info":
                members[wish] = shapes.info(self._herding.info(name))
            elif wish == "status":
                members[wish] = shapes.status(self._herding.status(name))
        return members

    def create(self, call: Call) -> Reply:
        request = bodies.read_create(call.body)
        config = _named(request.name, request.config)
        return _created(self._herding.create(request.name, config, request.initial_state), call)

    def info(self, call: Call) -> Reply:
        return json_reply(shapes.info(self._herding.info(_name(call))))

    def delete(self, call: Call) -> Reply:
        self._herding.delete(_name(call))
        return Reply(status=204)

    def config(self, call: Call) -> Reply:
        return json_reply(self._herding.info(_name(call)).config)

    def put_config(self, call: Call) -> Reply:
        name = _name(call)
        return _created(
            self._herding.put_config(name, _named(name, bodies.read_config(call.body))), call
        )

    def patch_config(self, call: Call) -> Reply:
        name, patch = _name(call), bodies.read_patch(call.body)
        if patch is None:
            self._herding.info(name)  # a connector that is not there is the greater fault
            raise RequestFailed("Cannot read the patch: an object was expected, not null")
        return json_reply(shapes.info(self._herding.patch_config(name, patch)))

    def status(self, call: Call) -> Reply:
        return json_reply(shapes.status(self._herding.status(_name(call))))

    def pause(self, call: Call) -> Reply:
        self._herding.pause(_name(call))
        return Reply(status=202)

    def resume(self, call: Call) -> Reply:
        self._herding.resume(_name(call))
        return Reply(status=202)

    def stop(self, call: Call) -> Reply:
        self._herding.stop(_name(call))
        return Reply(status=204)

    def restart(self, call: Call) -> Reply:
        include_tasks = call.flag("includeTasks", default=False)
        only_failed = call.flag("onlyFailed", default=False)
        if not include_tasks and not only_failed:
            self._herding.restart(_name(call))
            return Reply(status=204)
        status = self._herding.restart_with(
            _name(call), include_tasks=include_tasks, only_failed=only_failed
        )
        return json_reply(shapes.status(status), 202)

    def tasks(self, call: Call) -> Reply:
        return json_reply([shapes.task(task) for task in self._herding.tasks(_name(call))])

    def task_status(self, call: Call) -> Reply:
        task = _task(call)
        if task is None:
            return _no_task()
        return json_reply(shapes.task_state(task, self._herding.task_status(_name(call), task)))

    def restart_task(self, call: Call) -> Reply:
        task = _task(call)
        if task is None:
            return _no_task()
        self._herding.restart_task(_name(call), task)
        return Reply(status=204)

    def topics(self, call: Call) -> Reply:
        name = _name(call)
        return json_reply({name: {"topics": self._herding.active_topics(name)}})

    def reset_topics(self, call: Call) -> Reply:
        self._herding.reset_active_topics(_name(call))
        return Reply(status=202)

    def offsets(self, call: Call) -> Reply:
        return json_reply(shapes.offsets(self._herding.offsets(_name(call))))

    def alter_offsets(self, call: Call) -> Reply:
        offsets = bodies.read_offsets(call.body)
        if not offsets:
            raise BadRequest(
                "Partitions / offsets need to be provided for an alter offsets request"
            )
        return json_reply({"message": self._herding.alter_offsets(_name(call), offsets)})

    def reset_offsets(self, call: Call) -> Reply:
        return json_reply({"message": self._herding.reset_offsets(_name(call))})


def _name(call: Call) -> str:
    return call.names["connector"]


def _named(name: str, config: Config) -> Config:
    """Put the connector's name into its config, or refuse the other name that is there."""
    included = config.get(_NAME)
    if included is None:
        return {**config, _NAME: name}
    if included != name:
        raise BadRequest(
            f"Connector name configuration ({included}) "
            f"doesn't match connector name in the URL ({name})"
        )
    return config


def _created(put: Put, call: Call) -> Reply:
    if not put.created:
        return json_reply(shapes.info(put.info))
    place = f"{call.base}/connectors/{quoted(put.info.name)}"
    return json_reply(shapes.info(put.info), 201, (("Location", place),))


def _task(call: Call) -> int | None:
    written = call.names["task"]
    number = int(written) if _INTEGER.fullmatch(written) else None
    return number if number is not None and -_LARGEST_INT - 1 <= number <= _LARGEST_INT else None


def _no_task() -> Reply:
    return error_reply(404, "HTTP 404 Not Found")
