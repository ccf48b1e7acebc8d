"""Everything that is wrong with a dedicated file, found without starting anything.

The file is compiled for every flow that runs, expanded, and each part judged by its table and
checks; each cluster is judged as its clients will see it. A fault that shows up in many places is
told once, with the line it comes from.

If a provider cannot be read (secrets are seldom on the computer where a file is written), that is
a fault of its own, and all that does not depend on it is judged all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from sparkmirror.config.client_configs import ClientType
from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.enrichment import ALIAS_LIST_KEYS
from sparkmirror.config.definition.validation import (
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.files.flow_parts import FlowPart
from sparkmirror.config.files.mirror_maker_config import NO_FLOWS_MESSAGE, MirrorMakerConfig
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.provenance import CandidateValue, LayeredConfig, ResolvedSetting
from sparkmirror.config.files.worker_file import WorkerFile, is_worker_file
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.review.addresses import (
    BOOTSTRAP_SERVERS_KEY,
    address_faults,
    listener_faults,
)
from sparkmirror.config.review.findings import (
    FindingsCollector,
    ValidationReport,
    login_module_notices,
    plain_text_secret_notices,
    repeated_item_notice,
)
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.review.unused_keys import unused_key_notices
from sparkmirror.config.review.worker_file_validation import validate_worker_file
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.providers import try_create_providers
from sparkmirror.config.secrets.variables import redact_fault
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES, MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.errors import BadRequest, ConfigError, ConfigFault
from sparkmirror.model import SourceAndTarget

UNIQUE_PER_FLOW_KEYS = ("group.id", "config.storage.topic", "status.storage.topic")
"""What two flows into the same cluster must not have in common."""

_FILE = "the file"


def validate_file(file: Properties, environment: Mapping[str, str]) -> ValidationReport:
    """Judge a file, a dedicated one or a worker's. Never raises on account of what it says."""
    findings = FindingsCollector(file)
    providers, faults = try_create_providers(file.mapping, environment)
    _add_faults(findings, file, faults)
    if is_worker_file(file):
        validate_worker_file(WorkerFile(file, providers), findings)
        return findings.report()
    try:
        _validate_flows(MirrorMakerConfig(file, providers), findings)
    except ConfigError as error:
        _add_faults(findings, file, error.faults)
        findings.add_notices(file.notices)
    return findings.report()


def _add_faults(
    findings: FindingsCollector, file: Properties, faults: Iterable[ConfigFault]
) -> None:
    for fault in faults:
        findings.add_error(_FILE, fault.key, file.lines.get(fault.key), fault.message)


def _validate_flows(dedicated: MirrorMakerConfig, findings: FindingsCollector) -> None:
    """Judge all flows of a dedicated file."""
    written = {key: candidate.value for key, candidate in dedicated.file_values.items()}
    unfetched: frozenset[str] = frozenset()
    try:
        dedicated.expand(written)
    except ConfigError as error:
        unfetched = frozenset(fault.key for fault in error.faults)
        for fault in error.faults:
            line = dedicated.file_values[fault.key].origin.line
            findings.add_error(_FILE, fault.key, line, fault.message)
        dedicated = dedicated.lenient()
    _FlowsValidator(dedicated, findings, unfetched).validate()
    findings.add_notices(dedicated.notices)
    unresolved = dedicated.expand(written).unresolved
    findings.add_notices(notice for notice in unresolved if notice.key not in unfetched)
    findings.add_notices(plain_text_secret_notices(dedicated.properties))
    findings.add_notices(_shared_name_notices(dedicated, dedicated.flows()))
    findings.add_notices(unused_key_notices(dedicated))


class _FlowsValidator:
    """Goes through the clusters and flows of one file."""

    def __init__(
        self, dedicated: MirrorMakerConfig, findings: FindingsCollector, unfetched: frozenset[str]
    ) -> None:
        self._config = dedicated
        self._findings = findings
        self._unresolved_keys = unfetched
        """Keys of the file whose placeholders could not be fetched: they cannot be judged."""

    def validate(self) -> None:
        """Look at everything."""
        self._validate_top_level()
        flows = self._config.flows()
        if not flows:
            self._findings.add_error(_FILE, "clusters", self._line("clusters"), NO_FLOWS_MESSAGE)
        for alias in sorted({alias for flow in flows for alias in (flow.source, flow.target)}):
            for kind in ClientType:
                self._validate_clients(alias, kind)
        for flow in flows:
            for part in FlowPart:
                self._validate_part(flow, part)

    def _line(self, key: str) -> int | None:
        return (
            self._config.file_values[key].origin.line if key in self._config.file_values else None
        )

    def _validate_top_level(self) -> None:
        said = {key: candidate.value for key, candidate in self._config.file_values.items()}
        expanded = self._config.expand(said).values
        try:
            found = chain(
                listener_faults(self._config.process_config()), PROCESS_ADDITIONS.faults(expanded)
            )
            faults = [redact_fault(fault, said, expanded) for fault in found]
        except ConfigError as error:
            faults = list(error.faults)
        self._add_repeated_items(DEDICATED, self._config.file_values, expanded)
        for fault in faults:
            if fault.key not in self._unresolved_keys:
                self._findings.add_error(_FILE, fault.key, self._line(fault.key), fault.message)

    def _validate_clients(self, alias: str, kind: ClientType) -> None:
        layers = self._config.layered_cluster_config(alias)
        place = f"clients of {alias}"
        try:
            expanded = self._config.expand(layers.props).values
            self._add_repeated_items(MIRROR_CLIENT, layers, expanded)
            client = self._config.client_config(alias, kind)
        except ConfigError as error:
            for fault in error.faults:
                own = fault.key if f"{kind}.{fault.key}" not in layers else f"{kind}.{fault.key}"
                self._add_fault(
                    place, layers, ConfigFault(own, fault.message), f"{alias}.{fault.key}"
                )
            return
        for fault in address_faults(
            client.get(BOOTSTRAP_SERVERS_KEY), f"{kind}.{BOOTSTRAP_SERVERS_KEY}"
        ):
            told = redact_fault(fault, layers.props, expanded)
            self._add_fault(place, layers, told, f"{alias}.{BOOTSTRAP_SERVERS_KEY}")
        key = f"{kind}.{jaas.SASL_JAAS_CONFIG}"
        if key not in layers:
            return
        try:
            self._findings.add_notices(login_module_notices(client, layers[key].origin.key))
        except ConfigError as error:
            self._add_fault(
                place, layers, ConfigFault(key, str(error)), f"{alias}.{jaas.SASL_JAAS_CONFIG}"
            )

    def _add_repeated_items(
        self,
        table: ConfigDef,
        written: Mapping[str, CandidateValue | ResolvedSetting],
        props: Mapping[str, str],
    ) -> None:
        for name in table.keys_with_repeated_items(props):
            origin = written[name].origin
            self._findings.add_notices([repeated_item_notice(origin.key, origin.line)])

    def _validate_part(self, flow: SourceAndTarget, part: FlowPart) -> None:
        layers = compiled_config(self._config, flow, part)
        worker = self._config.worker_config(flow)
        if part is FlowPart.WORKER:
            expanded = worker
            faults: Iterable[ConfigFault] = _worker_faults(worker)
        else:
            expanded = self._config.expand(layers.props).values
            support = worker.get("exactly.once.source.support", "").strip().lower()
            faults = _connector_faults(
                expanded, WorkerCapabilities(exactly_once=support == "enabled")
            )
        if part is FlowPart.SOURCE:
            faults = chain(faults, SOURCE_ADDITIONS.faults(expanded))
        self._add_repeated_items(part.config_def, layers, expanded)
        for fault in faults:
            told = redact_fault(fault, layers.props, expanded, _quoted_keys(fault.key, layers))
            self._add_fault(f"{flow} {part}", layers, told, f"{flow}.{told.key}")

    def _add_fault(
        self, place: str, layers: LayeredConfig, fault: ConfigFault, to_write: str
    ) -> None:
        """Point at the line behind a setting; for one that is missing, at what to write."""
        written = layers.get(fault.key) or self._config.file_values.get(fault.key)
        if written is None:
            self._findings.add_error(place, to_write, None, fault.message)
            return
        origin = written.origin
        if origin.key not in self._unresolved_keys:
            key = origin.key or to_write
            self._findings.add_error(place, key, origin.line, fault.message)


def _quoted_keys(key: str, written: Collection[str]) -> tuple[str, ...]:
    """Other keys whose values a fault about this key may quote, or has its very name from."""
    if key == CONNECTOR_CLASS:
        return (CONNECTOR_VERSION,)
    brought_along = key not in written
    return tuple(one for one in ALIAS_LIST_KEYS if brought_along and key.startswith(f"{one}."))


def _worker_faults(config: Mapping[str, str]) -> Iterator[ConfigFault]:
    for value in DISTRIBUTED.validate(config):
        # How the worker connects has been judged with its cluster.
        if value.errors and value.name not in CLIENT_SECURITY_NAMES:
            yield ConfigFault(value.name, value.errors[0])


def _connector_faults(
    config: Mapping[str, str], terms: WorkerCapabilities
) -> Iterator[ConfigFault]:
    try:
        validation = validate_connector_config(config, terms)
    except BadRequest as error:
        yield ConfigFault(CONNECTOR_CLASS, str(error))
        return
    for finding in validation.configs:
        if finding.value.errors:
            yield ConfigFault(finding.value.name, finding.value.errors[0])


def _shared_name_notices(
    dedicated: MirrorMakerConfig, flows: Iterable[SourceAndTarget]
) -> Iterator[Notice]:
    users: dict[tuple[str, str, str], list[SourceAndTarget]] = {}
    for flow in flows:
        config = dedicated.worker_config(flow)
        for key in UNIQUE_PER_FLOW_KEYS:
            users.setdefault((flow.target, key, config[key]), []).append(flow)
    for (target, key, _), sharing in users.items():
        if len(sharing) > 1:
            names = ", ".join(map(str, sharing))
            origin = dedicated.layered_worker_config(sharing[0])[key].origin
            yield Notice(
                kind=NoticeKind.SHARED_BY_FLOWS,
                message=f"{names} would share {key} on {target} and disturb each other; leave it "
                "out, then each flow gets its own",
                key=origin.key,
                line=origin.line,
            )
