"""Settings of topics changed, a few at a time, with the broker's answer for each topic.

Brokers from 2.3 on change only what they are told (IncrementalAlterConfigs). Older ones take the
whole of a topic's settings at once (AlterConfigs): what is not named goes back to its default, so
the caller gives all that is to stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.protocol.admin import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topic_configs import ConfigOperation, Operation
from sparkmirror.wire.codes import Code
from sparkmirror.wire.messages import Api
from sparkmirror.wire.place import refusal
from sparkmirror.wire.routing import CALL_TIMEOUT_S, Controller, Router

INCREMENTAL_ALTER_CONFIGS = Api(
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, range(2)
)
ALTER_CONFIGS = Api(AlterConfigsRequest, AlterConfigsResponse, range(3))
_TOPIC = 2
_NUMBERS = {Operation.SET: 0, Operation.DELETE: 1}


def change_topic_configs(
    router: Router,
    changes: Mapping[str, Sequence[ConfigOperation]],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[str, ClusterError]:
    """Set and delete settings of topics; return what went wrong, by topic.

    Raises UnsupportedByBroker if the brokers are too old for it.
    """
    if not changes:
        return {}
    answer = router.call(
        INCREMENTAL_ALTER_CONFIGS,
        lambda: IncrementalAlterConfigsRequest(
            resources=[_changes(topic, operations) for topic, operations in changes.items()],
            validate_only=False,
        ),
        Controller(),
        codes=lambda answer: [response.error_code for response in answer.responses],
        timeout_s=timeout_s,
    )
    return _failures(router, INCREMENTAL_ALTER_CONFIGS.name, answer)


def replace_topic_configs(
    router: Router,
    configs: Mapping[str, Mapping[str, str]],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[str, ClusterError]:
    """Give topics exactly these settings, all others their defaults; return what went wrong."""
    if not configs:
        return {}
    answer = router.call(
        ALTER_CONFIGS,
        lambda: AlterConfigsRequest(
            resources=[_whole(topic, settings) for topic, settings in configs.items()],
            validate_only=False,
        ),
        Controller(),
        codes=lambda answer: [response.error_code for response in answer.responses],
        timeout_s=timeout_s,
    )
    return _failures(router, ALTER_CONFIGS.name, answer)


def _changes(
    topic: str, operations: Sequence[ConfigOperation]
) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return resource(
        resource_type=_TOPIC,
        resource_name=topic,
        configs=[
            resource.AlterableConfig(
                name=one.name, config_operation=_NUMBERS[one.operation], value=one.value
            )
            for one in operations
        ],
    )


def _whole(topic: str, settings: Mapping[str, str]) -> AlterConfigsRequest.AlterConfigsResource:
    resource = AlterConfigsRequest.AlterConfigsResource
    return resource(
        resource_type=_TOPIC,
        resource_name=topic,
        configs=[
            resource.AlterableConfig(name=name, value=value) for name, value in settings.items()
        ],
    )


def _failures(
    router: Router, api: str, answer: IncrementalAlterConfigsResponse | AlterConfigsResponse
) -> dict[str, ClusterError]:
    cluster = router.client.cluster
    return {
        response.resource_name: refusal(
            cluster,
            api,
            Code(response.error_code),
            f"{response.resource_name}: {response.error_message}",
        )
        for response in answer.responses
        if response.error_code
    }
