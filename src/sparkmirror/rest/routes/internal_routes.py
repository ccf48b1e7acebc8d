"""Requests that workers of one group send each other, signed with the group's session key.

    POST /connectors/{c}/tasks              the owner of a connector has generated task configs
    PUT /connectors/{c}/fence               a task is about to start with exactly-once support
    GET /worker/connectors/{c}/partitions   what this worker knows; also /events and /groups. Not in
                                            Connect's API

In dedicated mode, with one group per flow, each path begins with /{source}/{target}. No request
needs a password: its signature proves that a worker of the group sends it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.connect.herder.mirror_monitor_api import MirrorMonitor
from sparkmirror.connect.herder.multi_flow_herder import flow_connector_name
from sparkmirror.connect.internal_requests.internal_herder import InternalHerder
from sparkmirror.errors import NotFound
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.path import quote_segment
from sparkmirror.rest.http.router import Handler, Route
from sparkmirror.rest.routes import partition_event_and_group_json, request_bodies
from sparkmirror.rest.worker_group_access import WorkerGroupAccess


def internal_routes(
    groups: Mapping[SourceAndTarget | None, WorkerGroupAccess], monitor: MirrorMonitor | None
) -> tuple[Route, ...]:
    """The routes that workers use among each other; with flows, those of dedicated mode.

    Without a `monitor` there are only Connect's two.
    """
    handlers = _InternalHandlers(groups)
    flow = "" if None in groups else "/{source}/{target}"
    one = f"{flow}/connectors/{{connector}}"
    changes = (
        _route("POST", f"{one}/tasks", handlers.put_tasks),
        _route("PUT", f"{one}/fence", handlers.fence),
    )
    if monitor is None:
        return changes
    own, reads = f"{flow}/worker/connectors/{{connector}}", _OwnProgress(groups, monitor)
    return (
        *changes,
        _route("GET", f"{own}/partitions", reads.partitions),
        _route("GET", f"{own}/events", reads.events),
        _route("GET", f"{own}/groups", reads.groups),
    )


def own_path(flow: SourceAndTarget | None, connector: str, view: str) -> str:
    """Return the path of what one worker knows of a connector: partitions, events or groups."""
    prefix = "" if flow is None else f"/{quote_segment(flow.source)}/{quote_segment(flow.target)}"
    return f"{prefix}/worker/connectors/{quote_segment(connector)}/{view}"


def _route(method: str, path: str, handler: Handler) -> Route:
    return Route(method=method, path=path, handler=handler, signed=True)


class _InternalHandlers:
    """Handlers of Connect's requests. The signature is that of the body."""

    def __init__(self, groups: Mapping[SourceAndTarget | None, WorkerGroupAccess]) -> None:
        self._groups = groups

    def put_tasks(self, call: Call) -> Reply:
        herder = _find_herder(self._groups, call)
        herder.verify_internal_request(call.headers, call.body)
        configs = request_bodies.read_task_configs(call.body)
        herder.put_task_configs(call.path_parameters["connector"], configs)
        return Reply(status=204)

    def fence(self, call: Call) -> Reply:
        herder = _find_herder(self._groups, call)
        herder.verify_internal_request(call.headers, call.body)
        herder.fence_zombie_source_tasks(call.path_parameters["connector"])
        return Reply(status=204)


class _OwnProgress:
    """Handlers of reads. The signature is that of the method, the path and the query."""

    def __init__(
        self, groups: Mapping[SourceAndTarget | None, WorkerGroupAccess], monitor: MirrorMonitor
    ) -> None:
        self._groups = groups
        self._monitor = monitor

    def partitions(self, call: Call) -> Reply:
        name = self._verified_name(call)
        return json_reply(partition_event_and_group_json.partition_items(self._monitor, name))

    def events(self, call: Call) -> Reply:
        name = self._verified_name(call)
        return json_reply(partition_event_and_group_json.event_items(self._monitor, name))

    def groups(self, call: Call) -> Reply:
        name = self._verified_name(call)
        group = call.parameter("group")
        return json_reply(
            {
                "groups": partition_event_and_group_json.group_items(self._monitor, name, group),
                "reason": "" if group is None else self._monitor.group_exclusion(name, group),
            }
        )

    def _verified_name(self, call: Call) -> str:
        """Return the name in the monitor. Raises RequestError if the signature is not valid."""
        herder = _find_herder(self._groups, call)
        herder.verify_internal_request(call.headers, f"GET {call.target}".encode())
        flow, name = _flow(call), call.path_parameters["connector"]
        return name if flow is None else flow_connector_name(flow, name)


def _flow(call: Call) -> SourceAndTarget | None:
    source, target = call.path_parameters.get("source"), call.path_parameters.get("target")
    return None if source is None or target is None else SourceAndTarget(source, target)


def _find_herder(
    groups: Mapping[SourceAndTarget | None, WorkerGroupAccess], call: Call
) -> InternalHerder:
    flow = _flow(call)
    if flow not in groups:
        assert flow is not None, "a worker without flows has a group"
        source, target = flow.source, flow.target
        raise NotFound(f"No replication flow found for source '{source}' and target '{target}'")
    return groups[flow].herder
