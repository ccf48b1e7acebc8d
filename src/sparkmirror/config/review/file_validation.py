"""Finds the faults of a dedicated file or a worker's file, without a start.

A dedicated file is compiled for every flow that runs and expanded. Each part of a flow is checked
against its table; the clients of each cluster are checked once per client type. `flow_start_checks`
then makes the checks of a start. A fault that affects many parts is reported once, with its line.

A config provider that cannot be read is a fault of its own (secrets are seldom on the computer
where a file is written). Keys that do not depend on it are checked all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from sparkmirror.config.client_configs import ClientType, worker_producer_config
from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.connector_config_validation import (
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.definition.enrichment import ALIAS_LIST_KEYS
from sparkmirror.config.event_hubs_defaults import event_hubs_notice
from sparkmirror.config.files.client_config_origins import worker_producer_layers
from sparkmirror.config.files.mirror_maker_config import (
    CLUSTERS,
    ENABLED,
    MirrorMakerConfig,
)
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.provenance import CandidateValue, ResolvedSetting
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.files.worker_file import WorkerFile, is_worker_file
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.config.review.addresses import (
    BOOTSTRAP_SERVERS_KEY,
    address_faults,
    listener_faults,
)
from sparkmirror.config.review.circular_flows import circular_flow_notices
from sparkmirror.config.review.exposed_files import exposed_file_notices
from sparkmirror.config.review.findings import (
    FindingsCollector,
    ValidationReport,
    login_module_notices,
    plain_text_secret_notices,
    repeated_item_notice,
)
from sparkmirror.config.review.flow_fault_lines import FILE_LOCATION, FlowFaultLines
from sparkmirror.config.review.flow_start_checks import FlowStartValidator
from sparkmirror.config.review.key_usage import (
    compiled_config,
    disabling_key,
    is_part_enabled,
)
from sparkmirror.config.review.start_check_callbacks import StartCheckCallbacks
from sparkmirror.config.review.unused_keys import unused_key_notices
from sparkmirror.config.review.worker_file_validation import add_worker_file_findings
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.providers import try_create_providers
from sparkmirror.config.secrets.variables import redact_fault
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS
from sparkmirror.config.tables.client.common_client_configs import (
    CLIENT_SECURITY_NAMES,
    MIRROR_CLIENT,
)
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import BadRequest, ConfigError, ConfigFault
from sparkmirror.model import SourceAndTarget

UNIQUE_PER_FLOW_KEYS = ("group.id", "config.storage.topic", "status.storage.topic")
"""The keys that must differ between two flows into the same cluster."""


def validate_file(
    file: Properties, environment: Mapping[str, str], checks: StartCheckCallbacks
) -> ValidationReport:
    """The findings about a dedicated file or a worker's file. No content makes this raise."""
    if is_worker_file(file):
        return validate_worker_file(file, environment, checks)
    return validate_dedicated_file(file, environment, checks)


def validate_dedicated_file(
    file: Properties,
    environment: Mapping[str, str],
    checks: StartCheckCallbacks,
    targets: Collection[str] = (),
) -> ValidationReport:
    """The findings about a file that is started as a dedicated file. No content makes this raise.

    With `targets`, only the flows into these clusters are checked: a node runs no others.
    """
    findings = FindingsCollector(file.file, file.lines)
    providers, faults = try_create_providers(file.mapping, environment)
    _add_faults(findings, file, faults)
    try:
        _validate_flows(MirrorMakerConfig(file, providers), findings, checks, targets)
    except ConfigError as error:
        _add_faults(findings, file, error.faults)
        findings.add_notices(file.notices)
    findings.add_notices(exposed_file_notices(file, environment, with_read_files=True))
    return findings.report()


def validate_worker_file(
    file: Properties, environment: Mapping[str, str], checks: StartCheckCallbacks
) -> ValidationReport:
    """The findings about a file that is started as a worker's file. No content makes this raise."""
    findings = FindingsCollector(file.file, file.lines)
    providers, faults = try_create_providers(file.mapping, environment)
    _add_faults(findings, file, faults)
    add_worker_file_findings(WorkerFile(file, providers), findings, checks)
    findings.add_notices(exposed_file_notices(file, environment, with_read_files=True))
    return findings.report()


def _add_faults(
    findings: FindingsCollector, file: Properties, faults: Iterable[ConfigFault]
) -> None:
    for fault in faults:
        findings.add_error(FILE_LOCATION, fault.key, file.lines.get(fault.key), fault.message)


def _validate_flows(
    config: MirrorMakerConfig,
    findings: FindingsCollector,
    checks: StartCheckCallbacks,
    targets: Collection[str],
) -> None:
    written = {key: candidate.value for key, candidate in config.file_values.items()}
    unresolved_keys: frozenset[str] = frozenset()
    try:
        config.expand(written)
    except ConfigError as error:
        unresolved_keys = frozenset(fault.key for fault in error.faults)
        for fault in error.faults:
            line = config.file_values[fault.key].origin.line
            findings.add_error(FILE_LOCATION, fault.key, line, fault.message)
        config = config.lenient()
    faults = FlowFaultLines(config, findings, unresolved_keys)
    flows = config.flows(targets)
    if not flows:
        message = config.no_flows_message(targets)
        findings.add_error(FILE_LOCATION, CLUSTERS, faults.line(CLUSTERS), message)
    valid_parts = _FlowsValidator(config, findings, faults, checks).validate(flows)
    FlowStartValidator(config, faults, checks).validate(flows, valid_parts)
    findings.add_notices(config.notices)
    unresolved = config.expand(written).unresolved
    findings.add_notices(notice for notice in unresolved if notice.key not in unresolved_keys)
    findings.add_notices(plain_text_secret_notices(config.properties.mapping))
    findings.add_notices(_shared_name_notices(config, flows))
    findings.add_notices(circular_flow_notices(config, valid_parts, checks))
    findings.add_notices(unused_key_notices(config))


class _FlowsValidator:
    """Checks the clusters and flows of one file against the tables."""

    def __init__(
        self,
        config: MirrorMakerConfig,
        findings: FindingsCollector,
        faults: FlowFaultLines,
        checks: StartCheckCallbacks,
    ) -> None:
        self._config = config
        self._findings = findings
        self._faults = faults
        self._checks = checks

    def validate(
        self, flows: Collection[SourceAndTarget]
    ) -> frozenset[tuple[SourceAndTarget, FlowPart]]:
        """Add all faults of these flows. Returns the parts that have none.

        A connector that is not enabled is not checked: it does not run, and MirrorMaker 2 starts
        with such a file. Its keys get a notice that they have no effect.
        """
        self._validate_top_level()
        for alias in sorted({alias for flow in flows for alias in (flow.source, flow.target)}):
            for client_type in ClientType:
                self._validate_clients(alias, client_type)
        parts = [
            (flow, part)
            for flow in flows
            for part in FlowPart
            if is_part_enabled(self._config, compiled_config(self._config, flow, part), part)
        ]
        self._findings.add_notices(self._checkpoint_notices(flows))
        self._findings.add_notices(self._event_hubs_notices(flows))
        return frozenset(one for one in parts if not self._validate_part(*one))

    def _checkpoint_notices(self, flows: Iterable[SourceAndTarget]) -> Iterator[Notice]:
        """Name the flows that copy records but translate no group offsets."""
        for flow in flows:
            layers = compiled_config(self._config, flow, FlowPart.CHECKPOINT)
            key = disabling_key(self._config, layers, FlowPart.CHECKPOINT)
            if key and key != ENABLED:
                origin = layers[key].origin
                yield Notice(
                    kind=NoticeKind.NOT_RUN,
                    message=f"the checkpoint connector of {flow} does not run, and no offsets of"
                    " groups are translated",
                    line=origin.line,
                    key=origin.key,
                )

    def _event_hubs_notices(self, flows: Iterable[SourceAndTarget]) -> Iterator[Notice]:
        """Name the values that clients get because their cluster is Event Hubs."""
        for flow in flows:
            layers = compiled_config(self._config, flow, FlowPart.SOURCE)
            worker = self._config.layered_worker_config(flow)
            expanded = self._config.worker_config(flow)
            producer = worker_producer_config(expanded, self._config.expand(layers.props).values)
            written = worker_producer_layers(worker, layers).get(BOOTSTRAP_SERVERS_KEY)
            if written and (
                notice := event_hubs_notice(
                    producer, expanded, written.origin.key, written.origin.line
                )
            ):
                yield notice

    def _validate_top_level(self) -> None:
        written = {key: candidate.value for key, candidate in self._config.file_values.items()}
        expanded = self._config.expand(written).values
        try:
            listener = listener_faults(self._config.process_config())
            faults = [
                redact_fault(fault, written, expanded)
                for fault in chain(listener, PROCESS_ADDITIONS.faults(expanded))
            ]
        except ConfigError as error:
            faults = list(error.faults)
        self._add_repeated_items(DEDICATED, self._config.file_values, expanded)
        for fault in faults:
            self._faults.add_top_level(fault)

    def _validate_clients(self, alias: str, client_type: ClientType) -> None:
        layers = self._config.layered_cluster_config(alias)
        location = f"clients of {alias}"
        try:
            expanded = self._config.expand(layers.props).values
            self._add_repeated_items(MIRROR_CLIENT, layers, expanded)
            client = self._config.client_config(alias, client_type)
        except ConfigError as error:
            for fault in error.faults:
                own = f"{client_type}.{fault.key}"
                key = own if own in layers else fault.key
                self._faults.add(
                    location, layers, ConfigFault(key, fault.message), f"{alias}.{fault.key}"
                )
            return
        servers = client.get(BOOTSTRAP_SERVERS_KEY)
        for fault in address_faults(servers, f"{client_type}.{BOOTSTRAP_SERVERS_KEY}"):
            shown = redact_fault(fault, layers.props, expanded)
            self._faults.add(location, layers, shown, f"{alias}.{BOOTSTRAP_SERVERS_KEY}")
        key = f"{client_type}.{jaas.SASL_JAAS_CONFIG}"
        if key not in layers:
            return
        try:
            self._findings.add_notices(login_module_notices(client, layers[key].origin.key))
        except ConfigError as error:
            self._faults.add(
                location, layers, ConfigFault(key, str(error)), f"{alias}.{jaas.SASL_JAAS_CONFIG}"
            )

    def _add_repeated_items(
        self,
        config_def: ConfigDef,
        written: Mapping[str, CandidateValue | ResolvedSetting],
        props: Mapping[str, str],
    ) -> None:
        for name in config_def.keys_with_repeated_items(props):
            origin = written[name].origin
            self._findings.add_notices([repeated_item_notice(origin.key, origin.line)])

    def _validate_part(self, flow: SourceAndTarget, part: FlowPart) -> int:
        """Add the faults of one part. Returns how many there are."""
        layers = compiled_config(self._config, flow, part)
        worker = self._config.worker_config(flow)
        if part is FlowPart.WORKER:
            expanded = worker
            faults: Iterable[ConfigFault] = _worker_faults(worker)
        else:
            expanded = self._config.expand(layers.props).values
            support = worker.get("exactly.once.source.support", "").strip().lower()
            capabilities = WorkerCapabilities(
                exactly_once=support == "enabled",
                plugin_modules=PluginModuleAllowlist.from_properties(
                    self._config.properties.mapping
                ),
                transformation_faults=self._checks.transformations,
            )
            faults = _connector_faults(expanded, capabilities)
        self._add_repeated_items(part.config_def, layers, expanded)
        shown = [
            redact_fault(fault, layers.props, expanded, _quoted_keys(fault.key, layers))
            for fault in faults
        ]
        for fault in shown:
            self._faults.add(f"{flow} {part}", layers, fault, f"{flow}.{fault.key}")
        return len(shown)


def _quoted_keys(key: str, written: Collection[str]) -> tuple[str, ...]:
    """Other keys whose values a fault about this key may contain, in its text or in its key."""
    if key == CONNECTOR_CLASS:
        return (CONNECTOR_VERSION,)
    if key in written:
        return ()
    return tuple(one for one in ALIAS_LIST_KEYS if key.startswith(f"{one}."))


def _worker_faults(config: Mapping[str, str]) -> Iterator[ConfigFault]:
    for value in DISTRIBUTED.validate(config):
        # The connection and security keys have been checked with the clients of the cluster.
        if value.errors and value.name not in CLIENT_SECURITY_NAMES:
            yield ConfigFault(value.name, value.errors[0])


def _connector_faults(
    config: Mapping[str, str], capabilities: WorkerCapabilities
) -> Iterator[ConfigFault]:
    try:
        infos = validate_connector_config(config, capabilities)
    except BadRequest as error:
        yield ConfigFault(CONNECTOR_CLASS, str(error))
        return
    for info in infos.configs:
        if info.value.errors:
            yield ConfigFault(info.value.name, info.value.errors[0])


def _shared_name_notices(
    config: MirrorMakerConfig, flows: Iterable[SourceAndTarget]
) -> Iterator[Notice]:
    users: dict[tuple[str, str, str], list[SourceAndTarget]] = {}
    for flow in flows:
        worker = config.worker_config(flow)
        for key in UNIQUE_PER_FLOW_KEYS:
            users.setdefault((flow.target, key, worker[key]), []).append(flow)
    for (target, key, _), sharing in users.items():
        if len(sharing) > 1:
            names = ", ".join(map(str, sharing))
            origin = config.layered_worker_config(sharing[0])[key].origin
            yield Notice(
                kind=NoticeKind.SHARED_BY_FLOWS,
                message=f"{names} would share {key} on {target} and disturb each other; leave it "
                "out, then each flow gets its own",
                key=origin.key,
                line=origin.line,
            )
