"""Configs of topics, described and altered, with one result per topic.

Brokers from 2.3 on change only the configs named (IncrementalAlterConfigs). Older brokers replace
all configs of a topic at once (AlterConfigs): a config that is not named gets its default, so the
caller passes everything that must stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sparkmirror.cluster.describe_topics import topic_error
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.topic_configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigSource,
)
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Controller, Router
from sparkmirror.wire.protocol.apis import DESCRIBE_CONFIGS, Api, Q
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sparkmirror.wire.protocol.topics.topic_log_config import TOPIC_RESOURCE

INCREMENTAL_ALTER_CONFIGS = Api(
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, range(2)
)
ALTER_CONFIGS = Api(AlterConfigsRequest, AlterConfigsResponse, range(3))
_OPERATION_IDS = {AlterConfigOpType.SET: 0, AlterConfigOpType.DELETE: 1}

_Response = TypeVar("_Response", IncrementalAlterConfigsResponse, AlterConfigsResponse)
_SOURCES = {
    1: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    2: ConfigSource.DYNAMIC_BROKER_CONFIG,
    3: ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    4: ConfigSource.STATIC_BROKER_CONFIG,
    5: ConfigSource.DEFAULT_CONFIG,
    6: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    7: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    8: ConfigSource.DYNAMIC_GROUP_CONFIG,
}
_Config = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult

TopicConfigs = tuple[ConfigEntry, ...]


def describe_configs(
    router: Router, names: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, TopicConfigs | ClusterError]:
    """Return the configs of topics with their sources, or the error, by topic."""
    if not names:
        return {}
    answer = router.call(
        DESCRIBE_CONFIGS,
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
                )
                for name in sorted(names)
            ],
            include_synonyms=False,
        ),
        AnyBroker(),
        codes=lambda answer: [result.error_code for result in answer.results],
        timeout_s=timeout_s,
    )
    cluster = router.client.cluster
    return {
        result.resource_name: topic_error(
            cluster,
            DESCRIBE_CONFIGS.name,
            result.resource_name,
            ErrorCode(result.error_code),
            result.error_message,
        )
        if result.error_code
        else tuple(_config_entry(config) for config in result.configs)
        for result in answer.results
    }


def _config_entry(config: _Config) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_SOURCES.get(config.config_source, ConfigSource.UNKNOWN),
        sensitive=bool(config.is_sensitive),
        read_only=bool(config.read_only),
    )


def can_alter_configs(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> bool:
    """Whether a broker lists an API that changes configs of topics."""
    versions = router.connection_to(AnyBroker(), timeout_s=timeout_s).api_versions
    return any(
        versions.supports(request.API_KEY)
        for request in (IncrementalAlterConfigsRequest, AlterConfigsRequest)
    )


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
