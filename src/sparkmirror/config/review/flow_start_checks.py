"""The checks of a start for the flows of a dedicated file: REST server, clients, connector jobs.

Each check runs on the properties that the start would use. A fault names a property of one client;
the layers of the client tell which key of the file set it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    ConnectorClient,
    client_properties,
    connector_clients,
    worker_producer_config,
)
from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import trim
from sparkmirror.config.files.client_config_origins import client_layers, worker_producer_layers
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.provenance import LayeredConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.flow_fault_lines import FlowFaultLines
from sparkmirror.config.review.key_usage import compiled_config, is_part_enabled
from sparkmirror.config.review.start_check_callbacks import (
    SECURITY_PROTOCOL_KEY,
    StartCheckCallbacks,
    related_keys,
)
from sparkmirror.config.secrets.variables import redact_fault
from sparkmirror.errors import ConfigError, ConfigFault
from sparkmirror.model import SourceAndTarget

_SOURCE_CONSUMER = ConnectorClient(ClusterSide.SOURCE, ClientType.CONSUMER)


class FlowStartValidator:
    """Adds the faults that the start of a file's flows would report."""

    def __init__(
        self, config: MirrorMakerConfig, faults: FlowFaultLines, checks: StartCheckCallbacks
    ) -> None:
        self._config = config
        self._faults = faults
        self._checks = checks

    def validate(
        self,
        flows: Collection[SourceAndTarget],
        valid_parts: Collection[tuple[SourceAndTarget, FlowPart]],
    ) -> None:
        """Check the flows. `valid_parts` have no fault that their tables find."""
        self._validate_rest()
        for flow in flows:
            worker = self._config.worker_config(flow)
            layers = self._config.layered_worker_config(flow)
            location = f"{flow} {FlowPart.WORKER}"
            found = self._checks.client(worker)
            self._add_client_faults(location, flow.target, found, layers, worker)
            for part in FlowPart:
                if part.connector:
                    is_valid = {(flow, FlowPart.WORKER), (flow, part)} <= set(valid_parts)
                    self._validate_connector(flow, part, is_valid=is_valid)

    def _validate_rest(self) -> None:
        written = {key: candidate.value for key, candidate in self._config.file_values.items()}
        expanded = self._config.expand(written).values
        try:
            process = self._config.process_config()
        except ConfigError:
            return  # The validation of the top level has reported these faults.
        for fault in self._checks.rest(process, expanded):
            self._faults.add_top_level(redact_fault(fault, written, expanded), is_start=True)

    def _validate_connector(self, flow: SourceAndTarget, part: FlowPart, *, is_valid: bool) -> None:
        layers = compiled_config(self._config, flow, part)
        expanded = self._config.expand(layers.props).values
        plugin = find_connector(trim(expanded[CONNECTOR_CLASS]))
        if plugin is None or not is_part_enabled(self._config, layers, part):
            return
        location = f"{flow} {part}"
        for client in connector_clients(plugin.class_name, expanded):
            alias = flow.source if client.side is ClusterSide.SOURCE else flow.target
            own = client_properties(expanded, client)
            found = self._checks.client(own)
            self._add_client_faults(location, alias, found, client_layers(layers, client), own)
        worker = self._config.worker_config(flow)
        producer = worker_producer_config(worker, expanded)
        producer_layers = worker_producer_layers(self._config.layered_worker_config(flow), layers)
        self._add_client_faults(
            location,
            f"{flow.target}.producer",
            self._checks.client(producer),
            producer_layers,
            producer,
        )
        if not is_valid:
            return
        consumer = client_properties(expanded, _SOURCE_CONSUMER)
        consumer_layers = client_layers(layers, _SOURCE_CONSUMER)
        for fault in self._checks.connector(expanded, worker):
            # A job reads properties of its consumer too (auto.offset.reset), of its producer
            # (max.request.size), and keys of the worker, which have been validated with the worker.
            for written, values in (
                (layers, expanded),
                (consumer_layers, consumer),
                (producer_layers, producer),
            ):
                if fault.key in written:
                    shown = redact_fault(fault, written.props, values)
                    self._faults.add(location, written, shown, fault.key, is_start=True)
                    break

    def _add_client_faults(
        self,
        location: str,
        prefix: str,
        found: Collection[ConfigFault],
        layers: LayeredConfig,
        properties: Mapping[str, str],
    ) -> None:
        """Add the faults of one client. `prefix` is where the file could set what is missing."""
        for fault in found:
            self._faults.add(
                location,
                layers,
                redact_fault(fault, layers.props, properties),
                _missing_key(fault.key, prefix, layers),
                depends_on=related_keys(fault.key, layers),
                is_start=True,
            )


def _missing_key(name: str, prefix: str, layers: LayeredConfig) -> str:
    """What to write for a missing property: beside the security protocol, if the file sets one."""
    if SECURITY_PROTOCOL_KEY in layers:
        written = layers[SECURITY_PROTOCOL_KEY].origin.key
        if written.endswith(SECURITY_PROTOCOL_KEY):
            return written.removesuffix(SECURITY_PROTOCOL_KEY) + name
    return f"{prefix}.{name}"
