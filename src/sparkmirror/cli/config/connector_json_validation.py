"""`sparkmirror config validate` of connector JSON. Connects to nothing.

A config is validated as the REST API of a worker would validate it (`PUT /connector-plugins/
{class}/config/validate` and `POST /connectors`). What only the start of the connector would refuse
is a notice. Accepted forms:

    {"name": …, "config": {…}}         the body of POST /connectors
    {"connector.class": …, …}          a config, as GET /connectors/{name}/config returns it
    {"name-1": {…}, "name-2": {…}}     configs by name, or the answer of GET /connectors?expand=info
    [{…}, {…}]                         a list of any of these
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.client_configs import (
    BOOTSTRAP_SERVERS,
    client_properties,
    connector_clients,
    worker_producer_config,
)
from sparkmirror.config.definition.connector_config_validation import (
    CONNECTOR_CLASS,
    TransformationFaults,
    WorkerCapabilities,
)
from sparkmirror.config.definition.enrichment import enrich, undeclared_keys
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.files.client_config_origins import client_layers, worker_producer_layers
from sparkmirror.config.files.deprecated_keys import migrate_deprecated_keys
from sparkmirror.config.files.provenance import (
    CandidateValue,
    ConfigOrigin,
    LayeredConfig,
    PrecedenceRule,
)
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.config.review.findings import (
    FindingsCollector,
    ValidationReport,
    plain_text_secret_notices,
)
from sparkmirror.config.review.start_check_callbacks import StartCheckCallbacks
from sparkmirror.config.secrets.variables import (
    ConfigProvider,
    expand_variables,
    redact_fault,
)
from sparkmirror.config.suggestions import closest_name
from sparkmirror.connect.connectors.source.dead_letter_topics import transformation_faults
from sparkmirror.connect.herder.config_validator import ConfigValidator
from sparkmirror.connect.herder.herder import RawConfig
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.errors import ConfigError, ConfigFault, RequestError, RequestFailed
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.routes import request_bodies
from sparkmirror.rest.routes.connector_routes import config_with_name

FILE_LOCATION = "the file"
DEFAULT_WORKER = {
    BOOTSTRAP_SERVERS: "localhost:9092",
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
"""The worker if none is named. Only its defaults matter."""

_WHITESPACE = b" \t\r\n"
_UTF_8_MARK = b"\xef\xbb\xbf"
_MEMBER = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorWorker:
    """The worker that shall run the connectors."""

    capabilities: WorkerCapabilities = WorkerCapabilities(
        transformation_faults=transformation_faults
    )
    providers: Mapping[str, ConfigProvider] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=lambda: DEFAULT_WORKER, repr=False)

    @classmethod
    def from_file(
        cls,
        file: WorkerFile,
        transformation_faults: TransformationFaults = transformation_faults,
    ) -> ConnectorWorker:
        """Read a worker's file. Raises ConfigError."""
        properties = file.expand().values
        modules = PluginModuleAllowlist.from_properties(properties)
        settings = WorkerSettings.from_config(
            file.config(), "", properties, modules, transformation_faults
        )
        return cls(
            capabilities=settings.capabilities, providers=file.providers, properties=properties
        )


def is_connector_json(data: bytes) -> bool:
    """Whether the content of a file is JSON and not a .properties file."""
    return data.removeprefix(_UTF_8_MARK).lstrip(_WHITESPACE)[:1] in (b"{", b"[")


def validate_connectors(
    file: str, data: bytes, worker: ConnectorWorker, checks: StartCheckCallbacks
) -> ValidationReport:
    """The findings about the connectors of a JSON file. No content makes this raise."""
    findings = FindingsCollector(file, _lines(data))
    try:
        items = list(_items(request_bodies.parse_json(data.removeprefix(_UTF_8_MARK))))
    except RequestError as error:
        findings.add_error(FILE_LOCATION, "", None, str(error))
        return findings.report()
    for number, (name, value) in enumerate(items, 1):
        location = name or (FILE_LOCATION if len(items) == 1 else f"connector {number}")
        try:
            config = _read_config(name, value)
        except RequestError as error:
            findings.add_error(location, "", None, str(error))
            continue
        _ConnectorValidator(
            config.get("name") or location, config, worker, checks, findings
        ).validate()
    return findings.report()


def read_connectors(data: bytes, worker: ConnectorWorker) -> list[dict[str, str]]:
    """Return the connectors' configs, expanded. The file has no faults. Holds secrets."""
    items = _items(request_bodies.parse_json(data.removeprefix(_UTF_8_MARK)))
    configs = [_read_config(name, value) for name, value in items]
    return [
        expand_variables(
            {k: v for k, v in migrate_deprecated_keys(config).props.items() if v is not None},
            worker.providers,
        ).values
        for config in configs
    ]


def _items(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """The connectors of a document, each with the name that the document gives it, or none."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _items(item)
    elif isinstance(value, Mapping) and _is_map_of_connectors(value):
        for name, item in value.items():
            info = item.get("info") if isinstance(item, Mapping) else None
            yield name, info.get("config") if isinstance(info, Mapping) else item
    else:
        yield "", value


def _is_map_of_connectors(value: Mapping[str, JsonValue]) -> bool:
    return (
        bool(value)
        and "config" not in value
        and all(isinstance(item, Mapping) for item in value.values())
    )


def _read_config(name: str, value: JsonValue) -> RawConfig:
    """The config that a worker would store. Raises what the REST API would answer."""
    if isinstance(value, Mapping) and isinstance(value.get("config"), Mapping):
        request = request_bodies.create_request(value)
        return config_with_name(request.name, request.config)
    config = request_bodies.connector_config(value)
    return config_with_name(name, config) if name else config


def _lines(data: bytes) -> Mapping[str, int]:
    """The line of each member name that occurs once."""
    lines: dict[str, list[int]] = {}
    line, position = 1, 0
    for match in _MEMBER.finditer(data):
        line += data.count(b"\n", position, match.start())
        position = match.start()
        lines.setdefault(match[1].decode("utf-8", "replace"), []).append(line)
    return {name: numbers[0] for name, numbers in lines.items() if len(numbers) == 1}


class _ConnectorValidator:
    """Adds the findings about one connector."""

    def __init__(
        self,
        location: str,
        config: RawConfig,
        worker: ConnectorWorker,
        checks: StartCheckCallbacks,
        findings: FindingsCollector,
    ) -> None:
        self._location = location
        self._config = config
        self._worker = worker
        self._checks = checks
        self._findings = findings
        migrated = migrate_deprecated_keys(config)
        findings.add_notices(migrated.notices)
        self._written = {k: v for k, v in migrated.props.items() if v is not None}

    def validate(self) -> None:
        is_valid = self._validate_as_rest()
        self._findings.add_notices(plain_text_secret_notices(self._written))
        try:
            expansion = expand_variables(self._written, self._worker.providers)
        except ConfigError:
            return  # The REST API answers with this error.
        self._findings.add_notices(expansion.unresolved)
        plugin = find_connector(expansion.values.get(CONNECTOR_CLASS, "").strip())
        if plugin is None:
            return
        part = next(
            part
            for part in FlowPart
            if part.connector and part.connector.value == plugin.class_name
        )
        self._findings.add_notices(self._unused_key_notices(part))
        if is_valid and expansion.values.get("enabled", "true").strip().lower() != "false":
            self._findings.add_notices(self._start_notices(plugin.class_name, expansion.values))

    def _validate_as_rest(self) -> bool:
        """Add the faults that the REST API would answer with. Returns whether there are none."""
        validator = ConfigValidator(self._worker.capabilities, self._worker.providers)
        try:
            validator.require_valid(self._config)
        except RequestError as refusal:
            for key, message in self._faults_by_key(validator, refusal):
                self._findings.add_error(self._location, key, self._findings.line(key), message)
            return False
        return True

    def _faults_by_key(
        self, validator: ConfigValidator, refusal: RequestError
    ) -> Iterator[tuple[str, str]]:
        if isinstance(refusal, RequestFailed):
            yield "", str(refusal)
            return
        try:
            answer = validator.validate(self._written.get(CONNECTOR_CLASS, ""), self._config)
        except RequestError:
            yield CONNECTOR_CLASS, str(refusal)
            return
        for info in answer["configs"]:
            for error in info["value"]["errors"]:
                yield info["value"]["name"], error

    def _unused_key_notices(self, part: FlowPart) -> Iterator[Notice]:
        added = enrich(self._written, resolve_class).names
        undeclared = undeclared_keys(self._written, resolve_class)
        for key in self._written:
            if not part.reads(key) or key in undeclared:
                meant = closest_name(key, (*part.config_def.names, *added))
                advice = f"; did you mean {meant}?" if meant else ""
                yield Notice(
                    kind=NoticeKind.NO_EFFECT,
                    message=f"has no effect: the {part} connector does not read it{advice}",
                    key=key,
                )

    def _start_notices(self, connector_class: str, values: Mapping[str, str]) -> Iterator[Notice]:
        """What the REST API accepts and the start of the connector refuses."""
        layers = _layers(self._written)
        clients = [
            (client_layers(layers, client), client_properties(values, client))
            for client in connector_clients(connector_class, values)
        ]
        worker = self._worker.properties
        clients.append(
            (
                worker_producer_layers(_layers(worker), layers),
                worker_producer_config(worker, values),
            )
        )
        found: list[tuple[LayeredConfig, Mapping[str, str], ConfigFault]] = [
            (written, properties, fault)
            for written, properties in clients
            for fault in self._checks.client(properties)
        ]
        found += [(layers, values, fault) for fault in self._checks.connector(values, worker)]
        for written, properties, fault in found:
            shown = redact_fault(fault, written.props, properties)
            key = written[fault.key].origin.key if fault.key in written else fault.key
            message = f"the connector fails when it starts: {shown.message}"
            yield Notice(kind=NoticeKind.START_FAILS, message=message, key=key)


def _layers(config: Mapping[str, str]) -> LayeredConfig:
    layers = LayeredConfig()
    for key, value in config.items():
        origin = ConfigOrigin(rule=PrecedenceRule.TOP_LEVEL, key=key)
        layers.add_override(key, CandidateValue(value=value, origin=origin))
    return layers
