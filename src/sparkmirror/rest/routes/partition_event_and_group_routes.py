"""Routes that Connect does not have: partitions, events and groups of a mirror.

The worker that is asked asks all other workers of its group, and answers for all of them. A worker
that does not answer within two seconds is named in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.connect.herder.mirror_monitor_api import MirrorMonitor
from sparkmirror.connect.herder.multi_flow_herder import flow_connector_name
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.client.member_reads import MemberAnswers
from sparkmirror.rest.http.call import Call, Reply, large_json_reply
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.routes import partition_event_and_group_json as answers
from sparkmirror.rest.routes.internal_routes import own_path
from sparkmirror.rest.worker_group_access import WorkerGroupAccess


def monitoring_routes(
    herder: Herder,
    monitor: MirrorMonitor,
    groups: Mapping[SourceAndTarget | None, WorkerGroupAccess],
) -> tuple[Route, ...]:
    """The routes of source partitions, events and groups. 404 for an unknown connector."""
    handlers = _MonitoringHandlers(herder, monitor, groups)
    one = "/connectors/{connector}"
    return (
        Route(method="GET", path=f"{one}/partitions", handler=handlers.partitions),
        Route(method="GET", path=f"{one}/events", handler=handlers.events),
        Route(method="GET", path=f"{one}/groups", handler=handlers.groups),
    )


class _MonitoringHandlers:
    def __init__(
        self,
        herder: Herder,
        monitor: MirrorMonitor,
        groups: Mapping[SourceAndTarget | None, WorkerGroupAccess],
    ) -> None:
        self._herder = herder
        self._monitor = monitor
        self._groups = groups

    def partitions(self, call: Call) -> Reply:
        name = self._name(call)
        own = answers.partition_items(self._monitor, name)
        group = self._find_group(name)
        if group is None:
            return large_json_reply(answers.partitions_answer(name, own, {}))
        others = group.read_others("partitions")
        by_worker = {group.own_worker_id: own, **_item_lists(others)}
        merged = answers.merge_partitions(by_worker, group.owner_of_task)
        return large_json_reply(answers.partitions_answer(name, merged, others.absent))

    def events(self, call: Call) -> Reply:
        name = self._name(call)
        own = answers.event_items(self._monitor, name)
        group = self._find_group(name)
        others = MemberAnswers() if group is None else group.read_others("events")
        items = [*own, *(item for items in _item_lists(others).values() for item in items)]
        return large_json_reply(answers.events_answer(name, items, others.absent))

    def groups(self, call: Call) -> Reply:
        name, asked = self._name(call), call.parameter("group")
        items = answers.group_items(self._monitor, name, asked)
        reasons = [] if asked is None else [self._monitor.group_exclusion(name, asked)]
        group = self._find_group(name)
        query = "" if asked is None else f"?{urlencode({'group': asked})}"
        others = MemberAnswers() if group is None else group.read_others(f"groups{query}")
        for found in others.answers.values():
            members = found if isinstance(found, Mapping) else {}
            items.extend(_items(members.get("groups")))
            reasons.append(str(members.get("reason") or ""))
        answer = answers.groups_answer(name, items, others.absent)
        if asked is not None and not items:
            answer["reason"] = next(filter(None, reasons), "")
        return large_json_reply(answer)

    def _name(self, call: Call) -> str:
        return self._herder.connector_info(call.path_parameters["connector"]).name

    def _find_group(self, name: str) -> _ConnectorGroup | None:
        """Return the group that a connector belongs to; None if REST has none for it."""
        for flow, access in self._groups.items():
            prefix = "" if flow is None else flow_connector_name(flow, "")
            if name.startswith(prefix):
                return _ConnectorGroup(access, flow, name.removeprefix(prefix))
        return None


class _ConnectorGroup:
    """One connector in the group of workers that runs it."""

    def __init__(
        self, access: WorkerGroupAccess, flow: SourceAndTarget | None, connector: str
    ) -> None:
        self._access = access
        self._flow = flow
        self._connector = connector

    @property
    def own_worker_id(self) -> str:
        return self._access.own_worker_id

    def read_others(self, view: str) -> MemberAnswers:
        return self._access.read_others(own_path(self._flow, self._connector, view))

    def owner_of_task(self, task: int) -> str:
        return self._access.owner_of_task(self._connector, task)


def _item_lists(others: MemberAnswers) -> dict[str, list[answers.JsonItem]]:
    """The items that each other worker answered."""
    return {worker: _items(answer) for worker, answer in others.answers.items()}


def _items(value: JsonValue) -> list[answers.JsonItem]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [dict(item) for item in value if isinstance(item, Mapping)]
