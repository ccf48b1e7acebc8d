"""Settings of topics, asked for with a raw message so that no error is lost.

The library's own call drops the error of each topic: one that we may not see would look like one
without settings, and its copy would be created with none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkmirror.cluster import error_translation
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource
from sparkmirror.wire.protocol.messages import DescribeConfigsRequest

_TOPIC = 2
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
_Request: Any = DescribeConfigsRequest

TopicConfigs = tuple[ConfigEntry, ...]


def request_topic_configs(names: Sequence[str], client: Any) -> Any:
    """Send the question to any broker; an error that passes is raised, to be tried again."""
    resources = [
        _Request.DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=name, configuration_keys=None
        )
        for name in names
    ]
    # A message keeps the version of its first sending, so each try makes a new one.
    request = _Request(resources=resources, include_synonyms=False)
    answer = client._manager.run(client._manager.send, request, None)
    for result in answer.results:
        error_translation.raise_if_retriable(result.error_code, result.resource_name)
    return answer


def read_topic_configs(answer: Any, cluster: str) -> dict[str, TopicConfigs | ClusterError]:
    """Take the answer apart, topic by topic: settings, or why there are none to be had."""
    return {
        str(result.resource_name): error_translation.error_from_code(
            result.error_code, f"{result.resource_name}: {result.error_message}", cluster
        )
        if result.error_code
        else tuple(_config_entry(config) for config in result.configs)
        for result in answer.results
    }


def _config_entry(config: Any) -> ConfigEntry:
    return ConfigEntry(
        name=str(config.name),
        value=config.value,
        source=_SOURCES.get(config.config_source, ConfigSource.UNKNOWN),
        sensitive=bool(config.is_sensitive),
        read_only=bool(config.read_only),
    )
