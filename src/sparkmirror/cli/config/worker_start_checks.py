"""What a worker checks when it starts, for `sparkmirror config validate`. Connects to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from sparkmirror.cli.config.circular_topics import circular_topic
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.definition.connector_config_validation import (
    CONNECTOR_CLASS,
    TransformationFaults,
)
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.review.start_check_callbacks import (
    SECURITY_PROTOCOL_KEY,
    StartCheckCallbacks,
)
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.heartbeat.heartbeat_config import MirrorHeartbeatConfig
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.connect.connectors.source.copy_job_builder import build_job
from sparkmirror.connect.connectors.source.dead_letter_topics import transformation_faults
from sparkmirror.connect.internal_requests.inter_worker_settings import (
    KEY_TTL,
    InterWorkerSettings,
)
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.errors import ConfigError, ConfigFault, TransformError
from sparkmirror.rest.settings import rest_settings
from sparkmirror.security.client_security import ClientSecurity

_CLUSTER = "the cluster"
_TRANSFORMS = "transforms"
_LISTENER_PREFIXES = ("listeners.https.", "admin.listeners.https.")


def worker_start_checks(
    environment: Mapping[str, str],
    transformations: TransformationFaults = transformation_faults,
) -> StartCheckCallbacks:
    """The checks of a worker that starts in this environment.

    `transformations` may also ask Spark about a query.
    """
    return StartCheckCallbacks(
        client=_ClientCheck(environment),
        rest=partial(_rest_faults, environment),
        connector=_connector_faults,
        transformations=transformations,
        circular_topic=circular_topic,
    )


class _ClientCheck:
    """Builds the security settings of clients. Clients with the same settings are built once."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._known: dict[tuple[tuple[str, str], ...], tuple[ConfigFault, ...]] = {}

    def __call__(self, properties: Mapping[str, str]) -> Sequence[ConfigFault]:
        settings = {name: properties[name] for name in CLIENT_SECURITY_NAMES if name in properties}
        identity = tuple(settings.items())
        if identity not in self._known:
            self._known[identity] = tuple(
                fault
                for build in _client_builders(settings, self._environment)
                for fault in _faults(build)
            )
        return self._known[identity]


def _client_builders(
    settings: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[Callable[[], object]]:
    """The parts of a client. Each is built alone, so that a fault of one hides no other."""
    protocol = settings.get(SECURITY_PROTOCOL_KEY, "PLAINTEXT")
    plain = {**settings, SECURITY_PROTOCOL_KEY: "PLAINTEXT"}
    yield partial(ClusterAccess.from_properties, _CLUSTER, plain)
    for half in ("SASL_PLAINTEXT", "SSL") if protocol.upper() == "SASL_SSL" else (protocol,):
        properties = {**settings, SECURITY_PROTOCOL_KEY: half}
        yield partial(ClientSecurity.from_properties, properties, environment)


def _rest_faults(
    environment: Mapping[str, str],
    config: Mapping[str, ParsedValue],
    properties: Mapping[str, str],
) -> Sequence[ConfigFault]:
    # A fixed host name: to find out the real one may take a DNS query.
    advertised = {**config, "rest.advertised.host.name": "localhost"}
    faults = [*_faults(partial(rest_settings, advertised, properties, environment))]
    if KEY_TTL in config:  # a dedicated file has these keys per cluster
        faults += _faults(partial(InterWorkerSettings.from_config, config))
    return [ConfigFault(_listener_key(fault.key, properties), fault.message) for fault in faults]


def _listener_key(key: str, properties: Mapping[str, str]) -> str:
    """The key as the file has it: the TLS settings of a listener may have a prefix."""
    if not key.startswith("ssl."):
        return key
    for prefix in _LISTENER_PREFIXES:
        if prefix + key in properties:
            return prefix + key
    for prefix in _LISTENER_PREFIXES:
        if any(name.startswith(prefix) for name in properties):
            return prefix + key
    return key


def _connector_faults(
    config: Mapping[str, str], worker: Mapping[str, str]
) -> Sequence[ConfigFault]:
    plugin = find_connector(config[CONNECTOR_CLASS].strip())
    assert plugin is not None, "the connector's config is valid"
    builders: dict[str, Callable[[], object]] = {
        SOURCE_CONNECTOR: partial(
            build_job,
            TaskPlan(
                connector=config["name"], config=config, tasks={0: {}}, task_count=1, generation=0
            ),
            WorkerClientConfig(properties=worker),
        ),
        CHECKPOINT_CONNECTOR: partial(MirrorCheckpointConfig.parse, config),
        HEARTBEAT_CONNECTOR: partial(MirrorHeartbeatConfig.parse, config),
    }
    return _faults(builders[plugin.class_name])


def _faults(build: Callable[[], object]) -> tuple[ConfigFault, ...]:
    try:
        build()
    except ConfigError as error:
        return error.faults
    except TransformError as error:
        return (ConfigFault(_TRANSFORMS, f"{error.java_class}: {error}"),)
    return ()
