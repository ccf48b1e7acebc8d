"""Configs of topics changed, with one result per topic.

Brokers from 2.3 on change only the configs named (IncrementalAlterConfigs). Older brokers replace
all configs of a topic at once (AlterConfigs): a config that is not named gets its default, so the
caller passes everything that must stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Controller, Router
from sparkmirror.wire.protocol.apis import Api, Q
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sparkmirror.wire.protocol.response_errors import error_for_code
from sparkmirror.wire.protocol.topic_log_config import TOPIC_RESOURCE

INCREMENTAL_ALTER_CONFIGS = Api(
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, range(2)
)
ALTER_CONFIGS = Api(AlterConfigsRequest, AlterConfigsResponse, range(3))
_OPERATION_IDS = {AlterConfigOpType.SET: 0, AlterConfigOpType.DELETE: 1}

_Response = TypeVar("_Response", IncrementalAlterConfigsResponse, AlterConfigsResponse)


def incremental_alter_configs(
    router: Router,
    changes: Mapping[str, Sequence[AlterConfigOp]],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[str, ClusterError]:
    """Set and delete configs of topics. Returns the errors by topic.

    Raises UnsupportedByBroker before Kafka 2.3.
    """
    if not changes:
        return {}
    build = partial(_incremental_request, changes)
    return _alter(router, INCREMENTAL_ALTER_CONFIGS, build, timeout_s)


def alter_configs(
    router: Router,
    configs: Mapping[str, Mapping[str, str]],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> dict[str, ClusterError]:
    """Replace all configs of topics. Returns the errors by topic."""
    if not configs:
        return {}
    return _alter(router, ALTER_CONFIGS, partial(_full_request, configs), timeout_s)


def _alter(
    router: Router, api: Api[Q, _Response], build_message: Callable[[], Q], timeout_s: float
) -> dict[str, ClusterError]:
    answer = router.call(
        api,
        build_message,
        Controller(),
        codes=lambda answer: [response.error_code for response in answer.responses],
        timeout_s=timeout_s,
    )
    return {
        response.resource_name: error_for_code(
            router.client.cluster,
            api.name,
            ErrorCode(response.error_code),
            ": ".join(filter(None, (response.resource_name, response.error_message))),
        )
        for response in answer.responses
        if response.error_code
    }


def _incremental_request(
    changes: Mapping[str, Sequence[AlterConfigOp]],
) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=TOPIC_RESOURCE,
                resource_name=topic,
                configs=[
                    resource.AlterableConfig(
                        name=one.name,
                        config_operation=_OPERATION_IDS[one.operation],
                        value=one.value,
                    )
                    for one in operations
                ],
            )
            for topic, operations in changes.items()
        ],
        validate_only=False,
    )


def _full_request(configs: Mapping[str, Mapping[str, str]]) -> AlterConfigsRequest:
    resource = AlterConfigsRequest.AlterConfigsResource
    return AlterConfigsRequest(
        resources=[
            resource(
                resource_type=TOPIC_RESOURCE,
                resource_name=topic,
                configs=[
                    resource.AlterableConfig(name=name, value=value)
                    for name, value in settings.items()
                ],
            )
            for topic, settings in configs.items()
        ],
        validate_only=False,
    )
