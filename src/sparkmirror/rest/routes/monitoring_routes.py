"""What Connect's API does not have: partitions and groups of a mirror, one by one.

GET /connectors/{connector}/partitions    how far each source partition is, and what stops it
GET /connectors/{connector}/groups        each group's offset, translated or why not
"""

from __future__ import annotations

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.herder.herder import Herder
from sparkmirror.connect.herder.monitoring import MirrorMonitor, MirrorPartitionStatus
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.http.call import Call, Reply, json_reply
from sparkmirror.rest.http.router import Route


def monitoring_routes(herding: Herder, watching: MirrorMonitor) -> tuple[Route, ...]:
    """Make the routes; a connector that the herding does not know is not found here either."""

    def partitions(call: Call) -> Reply:
        name = herding.connector_info(call.path_parameters["connector"]).name
        found = watching.partitions(name)
        return json_reply(
            {
                "name": name,
                "records": sum(one.records for one in found),
                "bytes": sum(one.bytes for one in found),
                "lag": sum(one.lag for one in found),
                "partitions": [_partition_json(one) for one in found],
            }
        )

    def groups(call: Call) -> Reply:
        name = herding.connector_info(call.path_parameters["connector"]).name
        wanted = call.parameter("group")
        found = [one for one in watching.groups(name) if wanted in (None, one.group)]
        return json_reply({"name": name, "groups": [_group_json(one) for one in found]})

    one = "/connectors/{connector}"
    return (
        Route(method="GET", path=f"{one}/partitions", handler=partitions),
        Route(method="GET", path=f"{one}/groups", handler=groups),
    )


def _partition_json(one: MirrorPartitionStatus) -> JsonValue:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "remote_topic": one.remote_topic,
        "task": one.task,
        "state": one.state,
        "position": one.position,
        "end": one.end,
        "lag": one.lag,
        "records": one.records,
        "bytes": one.bytes,
        "reason": one.reason,
    }


def _group_json(one: GroupPartitionReport) -> JsonValue:
    remote: JsonValue = None
    if one.remote is not None:
        remote = {"topic": one.remote.topic, "partition": one.remote.partition}
    return {
        "group": one.group,
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "remote": remote,
        "upstream": one.upstream,
        "downstream": one.downstream,
        "translated": one.translated,
        "checkpoint": one.checkpoint,
        "written": one.written,
    }
