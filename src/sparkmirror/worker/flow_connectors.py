"""What a dedicated file says of the connectors of a flow: which are enabled, and their configs.

A connector that the file does not enable may have a faulty config: MirrorMaker 2 starts with such a
file, and so does this program. The herder refuses that config. An earlier config of the connector,
which may be enabled, is removed then, so that the connector does not go on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import ENABLED, MirrorMakerConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.key_usage import disabling_key, is_part_enabled
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.multi_flow_herder import FlowSwitches
from sparkmirror.errors import BadRequest, MirrorError, NotFound
from sparkmirror.model import SourceAndTarget
from sparkmirror.worker.spark.spark_settings import own_spark_conf

log = logging.getLogger(__name__)

CONFIGURE_PAUSE_S = 2.0
"""The pause before the next attempt to write the configs of a flow's connectors."""
CONNECTOR_ORDER = (MirrorConnector.HEARTBEAT, MirrorConnector.CHECKPOINT, MirrorConnector.SOURCE)


def flow_switches(file: MirrorMakerConfig, flow: SourceAndTarget) -> FlowSwitches:
    """Return what the file enables of a flow."""
    disabled_by: dict[str, str] = {}
    for part in FlowPart:
        if part.connector is not None:
            layers = file.layered_connector_config(flow, part.connector)
            switch = disabling_key(file, layers, part)
            if switch:
                disabled_by[layers.props["name"]] = f"{flow}.{switch}"
    return FlowSwitches(
        is_enabled=f"{flow}.{ENABLED}" not in disabled_by.values(), disabled_by=disabled_by
    )


def shares_spark(file: MirrorMakerConfig, flow: SourceAndTarget) -> bool:
    """Whether a flow has a source connector that runs in the worker's common Spark application."""
    config = file.layered_connector_config(flow, MirrorConnector.SOURCE).props
    switches = flow_switches(file, flow)
    is_enabled = switches.is_enabled and config["name"] not in switches.disabled_by
    return is_enabled and not own_spark_conf(config)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationResult:
    """What became of the configs of a flow's connectors."""

    failures: tuple[str, ...] = ()
    """Why some could not be written, one text for each connector."""
    retriable: bool = False
    """Whether another attempt may succeed: the worker could not write, it did not refuse."""


def configure_connectors(
    herder: DistributedHerder, file: MirrorMakerConfig, flow: SourceAndTarget
) -> ConfigurationResult:
    """Write the configs of a flow's connectors.

    A refused config does not keep the others from being written. A failed write does.
    """
    failures: list[str] = []
    for connector in CONNECTOR_ORDER:
        try:
            configure_connector(herder, file, flow, connector)
        except MirrorError as error:
            what = f"{connector.simple_name} connector for {flow}"
            failures.append(f"Failed to configure {what}: {error}")
            if not isinstance(error, BadRequest):
                return ConfigurationResult(failures=tuple(failures), retriable=True)
    return ConfigurationResult(failures=tuple(failures))


def repeat_configuration(
    configure: Callable[[], ConfigurationResult],
    stopping: Event,
    pause_s: float = CONFIGURE_PAUSE_S,
) -> Iterator[str]:
    """Call `configure` until no other attempt can help, or until `stopping` is set.

    Yields the failures of each attempt, empty after a success. Logs them when they change.
    """
    logged = ""
    while not stopping.is_set():
        result = configure()
        text = " ".join(result.failures)
        if text and text != logged and not stopping.is_set():
            log.error("%s%s", text, " Trying again" if result.retriable else "")
            logged = text
        yield text
        if not result.retriable:
            return
        stopping.wait(pause_s)


def configure_connector(
    herder: DistributedHerder,
    file: MirrorMakerConfig,
    flow: SourceAndTarget,
    connector: MirrorConnector,
) -> None:
    """Write the config of the file, unless the herder already has it. Raises RequestError."""
    layers = file.layered_connector_config(flow, connector)
    config = layers.props
    name = config["name"]
    is_current = dict(herder.stored_config(name) or {}) == dict(config)
    if not is_current:
        try:
            herder.put_connector_config(name, config)
        except BadRequest as error:
            part = next(part for part in FlowPart if part.connector is connector)
            if is_part_enabled(file, layers, part):
                raise
            _remove_connector(herder, flow, name, error)
            return
    log.info("%s connector configured for %s.", name, flow)


def _remove_connector(
    herder: DistributedHerder, flow: SourceAndTarget, name: str, refusal: BadRequest
) -> None:
    try:
        herder.delete_connector(name)
        done = "its earlier config is removed"
    except NotFound:
        done = "it is not created"
    log.warning(
        "%s connector of %s is not enabled and its config has faults; %s: %s",
        *(name, flow, done, refusal),
    )
