"""The routes under /connectors."""

from __future__ import annotations

import re

from sparkmirror.connect.herder.herder import Herder, PutConnectorResult, RawConfig
from sparkmirror.errors import BadRequest, NotFound, RequestFailed
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.http.call import Call, Reply, error_reply, json_reply
from sparkmirror.rest.http.path import quote_segment
from sparkmirror.rest.http.router import Handler, Route
from sparkmirror.rest.routes import json_answers, request_bodies

_NAME = "name"
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_MAX_INT = 2**31 - 1


def connector_routes(herder: Herder) -> tuple[Route, ...]:
    """The routes under /connectors that Connect has too."""
    handlers = _ConnectorHandlers(herder)
    one = "/connectors/{connector}"

    def read(path: str, handler: Handler) -> Route:
        return Route(method="GET", path=path, handler=handler, is_immediate=handlers.is_immediate)

    return (
        read("/connectors", handlers.list),
        Route(method="POST", path="/connectors", handler=handlers.create, reads_body=True),
        read(one, handlers.info),
        Route(method="DELETE", path=one, handler=handlers.delete),
        read(f"{one}/config", handlers.config),
        Route(method="PUT", path=f"{one}/config", handler=handlers.put_config, reads_body=True),
        Route(method="PATCH", path=f"{one}/config", handler=handlers.patch_config, reads_body=True),
        read(f"{one}/status", handlers.status),
        Route(method="PUT", path=f"{one}/pause", handler=handlers.pause),
        Route(method="PUT", path=f"{one}/resume", handler=handlers.resume),
        Route(method="PUT", path=f"{one}/stop", handler=handlers.stop),
        Route(method="POST", path=f"{one}/restart", handler=handlers.restart),
        read(f"{one}/tasks", handlers.tasks),
        read(f"{one}/tasks/{{task}}/status", handlers.task_status),
        Route(method="POST", path=f"{one}/tasks/{{task}}/restart", handler=handlers.restart_task),
        Route(method="GET", path=f"{one}/topics", handler=handlers.topics),
        Route(method="PUT", path=f"{one}/topics/reset", handler=handlers.reset_topics),
        Route(method="GET", path=f"{one}/offsets", handler=handlers.offsets),
        Route(
            method="PATCH", path=f"{one}/offsets", handler=handlers.alter_offsets, reads_body=True
        ),
        Route(method="DELETE", path=f"{one}/offsets", handler=handlers.reset_offsets),
    )


class _ConnectorHandlers:
    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def is_immediate(self, call: Call) -> bool:
        """Whether a read waits for nothing and is short: none of all connectors at once."""
        return "expand" not in call.query and self._herder.reads_from_memory()

    def list(self, call: Call) -> Reply:
        names = self._herder.connectors()
        if "expand" not in call.query:
            return json_reply(names)
        expanded: dict[str, JsonValue] = {}
        for name in names:
            try:
                expanded[name] = self._expand(name, call)
            except NotFound:
                continue  # deleted since the names were listed, or not started yet
        return json_reply(expanded)

    def _expand(self, name: str, call: Call) -> JsonValue:
        members: dict[str, JsonValue] = {}
        for member in call.query["expand"]:
            if member == "info":
                members[member] = json_answers.connector_info(self._herder.connector_info(name))
            elif member == "status":
                members[member] = json_answers.connector_status(self._herder.connector_status(name))
        return members

    def create(self, call: Call) -> Reply:
        request = request_bodies.read_create(call.body)
        config = config_with_name(request.name, request.config)
        return _put_reply(
            self._herder.create_connector(request.name, config, request.initial_state), call
        )

    def info(self, call: Call) -> Reply:
        return json_reply(
            json_answers.connector_info(self._herder.connector_info(_connector_name(call)))
        )

    def delete(self, call: Call) -> Reply:
        self._herder.delete_connector(_connector_name(call))
        return Reply(status=204)

    def config(self, call: Call) -> Reply:
        return json_reply(self._herder.connector_info(_connector_name(call)).config)

    def put_config(self, call: Call) -> Reply:
        name = _connector_name(call)
        return _put_reply(
            self._herder.put_connector_config(
                name, config_with_name(name, request_bodies.read_config(call.body))
            ),
            call,
        )

    def patch_config(self, call: Call) -> Reply:
        name, patch = _connector_name(call), request_bodies.read_patch(call.body)
        if patch is None:
            self._herder.connector_info(name)  # the 404 of an unknown connector comes first
            raise RequestFailed("Cannot read the patch: an object was expected, not null")
        return json_reply(
            json_answers.connector_info(self._herder.patch_connector_config(name, patch))
        )

    def status(self, call: Call) -> Reply:
        return json_reply(
            json_answers.connector_status(self._herder.connector_status(_connector_name(call)))
        )

    def pause(self, call: Call) -> Reply:
        self._herder.pause_connector(_connector_name(call))
        return Reply(status=202)

    def resume(self, call: Call) -> Reply:
        self._herder.resume_connector(_connector_name(call))
        return Reply(status=202)

    def stop(self, call: Call) -> Reply:
        self._herder.stop_connector(_connector_name(call))
        return Reply(status=204)

    def restart(self, call: Call) -> Reply:
        include_tasks = call.boolean_parameter("includeTasks", default=False)
        only_failed = call.boolean_parameter("onlyFailed", default=False)
        if not include_tasks and not only_failed:
            self._herder.restart_connector(_connector_name(call))
            return Reply(status=204)
        status = self._herder.restart_connector_and_tasks(
            _connector_name(call), include_tasks=include_tasks, only_failed=only_failed
        )
        return json_reply(json_answers.connector_status(status), 202)

    def tasks(self, call: Call) -> Reply:
        return json_reply(
            [
                json_answers.task_info(task)
                for task in self._herder.task_configs(_connector_name(call))
            ]
        )

    def task_status(self, call: Call) -> Reply:
        task = _task_number(call)
        if task is None:
            return _task_not_found()
        return json_reply(
            json_answers.task_state(task, self._herder.task_status(_connector_name(call), task))
        )

    def restart_task(self, call: Call) -> Reply:
        task = _task_number(call)
        if task is None:
            return _task_not_found()
        self._herder.restart_task(_connector_name(call), task)
        return Reply(status=204)

    def topics(self, call: Call) -> Reply:
        name = _connector_name(call)
        return json_reply({name: {"topics": self._herder.active_topics(name)}})

    def reset_topics(self, call: Call) -> Reply:
        self._herder.reset_active_topics(_connector_name(call))
        return Reply(status=202)

    def offsets(self, call: Call) -> Reply:
        return json_reply(
            json_answers.connector_offsets(self._herder.connector_offsets(_connector_name(call)))
        )

    def alter_offsets(self, call: Call) -> Reply:
        offsets = request_bodies.read_offsets(call.body)
        if not offsets:
            raise BadRequest(
                "Partitions / offsets need to be provided for an alter offsets request"
            )
        return json_reply(
            {"message": self._herder.alter_connector_offsets(_connector_name(call), offsets)}
        )

    def reset_offsets(self, call: Call) -> Reply:
        return json_reply({"message": self._herder.reset_connector_offsets(_connector_name(call))})


def _connector_name(call: Call) -> str:
    return call.path_parameters["connector"]


def config_with_name(name: str, config: RawConfig) -> RawConfig:
    """Return the config with the connector's name. Raises BadRequest if it has another name."""
    included = config.get(_NAME)
    if included is None:
        return {**config, _NAME: name}
    if included != name:
        raise BadRequest(
            f"Connector name configuration ({included}) "
            f"doesn't match connector name in the URL ({name})"
        )
    return config


def _put_reply(put: PutConnectorResult, call: Call) -> Reply:
    if not put.created:
        return json_reply(json_answers.connector_info(put.info))
    location = f"{call.base_url}/connectors/{quote_segment(put.info.name)}"
    return json_reply(json_answers.connector_info(put.info), 201, (("Location", location),))


def _task_number(call: Call) -> int | None:
    """Return the task of the path; None if it is not a Java int."""
    text = call.path_parameters["task"]
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -_MAX_INT - 1 <= number <= _MAX_INT else None


def _task_not_found() -> Reply:
    return error_reply(404, "HTTP 404 Not Found")
