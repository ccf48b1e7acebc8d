"""Settings of topics changed, a few at a time, with the broker's answer for each topic.

Brokers from 2.3 on change only what they are told (IncrementalAlterConfigs). Older ones take the
whole of a topic's settings at once (AlterConfigs): what is not named goes back to its default, so
the caller gives all that is to stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Controller, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sparkmirror.wire.protocol.response_errors import error_for_code

INCREMENTAL_ALTER_CONFIGS = Api(
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, range(2)
)
ALTER_CONFIGS = Api(AlterConfigsRequest, AlterConfigsResponse, range(3))
_TOPIC = 2
_OPERATION_IDS = {AlterConfigOpType.SET: 0, AlterConfigOpType.DELETE: 1}


def incremental_alter_configs(
    router: Router,
    changes: Mapping[str, Sequence[AlterConfigOp]],
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
            resources=[
                _incremental_resource(topic, operations) for topic, operations in changes.items()
            ],
            validate_only=False,
        ),
        Controller(),
        codes=lambda answer: [response.error_code for response in answer.responses],
        timeout_s=timeout_s,
    )
    return _failures(router, INCREMENTAL_ALTER_CONFIGS.name, answer)


def alter_configs(
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
            resources=[_full_resource(topic, settings) for topic, settings in configs.items()],
            validate_only=False,
        ),
        Controller(),
        codes=lambda answer: [response.error_code for response in answer.responses],
        timeout_s=timeout_s,
    )
    return _failures(router, ALTER_CONFIGS.name, answer)


def _incremental_resource(
    topic: str, operations: Sequence[AlterConfigOp]
) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return resource(
        resource_type=_TOPIC,
        resource_name=topic,
        configs=[
            resource.AlterableConfig(
                name=one.name, config_operation=_OPERATION_IDS[one.operation], value=one.value
            )
            for one in operations
        ],
    )


def _full_resource(
    topic: str, settings: Mapping[str, str]
) -> AlterConfigsRequest.AlterConfigsResource:
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
        response.resource_name: error_for_code(
            cluster,
            api,
            ErrorCode(response.error_code),
            f"{response.resource_name}: {response.error_message}",
        )
        for response in answer.responses
        if response.error_code
    }
