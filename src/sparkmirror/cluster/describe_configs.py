"""All configs of topics. Each topic has its configs or its error."""

from __future__ import annotations

from collections.abc import Collection

from sparkmirror.cluster.topics import topic_error
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Router
from sparkmirror.wire.protocol.apis import DESCRIBE_CONFIGS
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse
from sparkmirror.wire.protocol.topic_log_config import TOPIC_RESOURCE

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
