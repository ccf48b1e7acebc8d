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

from sparkmirror.config import addresses, jaas
from sparkmirror.config.addresses import address_faults
from sparkmirror.config.clients import ClientKind
from sparkmirror.config.dedicated import NO_FLOWS, Dedicated
from sparkmirror.config.definition import ConfigDef
from sparkmirror.config.effects import without_effect
from sparkmirror.config.enrichment import CHAINS
from sparkmirror.config.findings import (
    Findings,
    Review,
    inline_secrets,
    login_notices,
    repeated_item,
)
from sparkmirror.config.landings import compiled
from sparkmirror.config.layers import Candidate, Layers, Setting
from sparkmirror.config.listeners import listener_faults
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.parts import Part
from sparkmirror.config.properties import Properties
from sparkmirror.config.providers import surveyed
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES, MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.validation import (
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    WorkerTerms,
    validate_connector,
)
from sparkmirror.config.variables import conceal
from sparkmirror.config.worker_file import WorkerFile, looks_like_worker_file
from sparkmirror.config.worker_review import review_worker
from sparkmirror.errors import BadRequest, ConfigError, Fault
from sparkmirror.model import SourceAndTarget

NOT_SHARED = ("group.id", "config.storage.topic", "status.storage.topic")
"""What two flows into the same cluster must not have in common."""

_FILE = "the file"


def review_file(file: Properties, environment: Mapping[str, str]) -> Review:
    """Judge a file, a dedicated one or a worker's. Never raises on account of what it says."""
    findings = Findings(file)
    providers, faults = surveyed(file.mapping, environment)
    _add_faults(findings, file, faults)
    if looks_like_worker_file(file):
        review_worker(WorkerFile(file, providers), findings)
        return findings.review()
    try:
        _review_flows(Dedicated(file, providers), findings)
    except ConfigError as error:
        _add_faults(findings, file, error.faults)
        findings.add_notices(file.notices)
    return findings.review()


def _add_faults(findings: Findings, file: Properties, faults: Iterable[Fault]) -> None:
    for fault in faults:
        findings.add_objection(_FILE, fault.key, file.lines.get(fault.key), fault.message)


def _review_flows(dedicated: Dedicated, findings: Findings) -> None:
    """Judge all flows of a dedicated file."""
    written = {key: candidate.value for key, candidate in dedicated.said.items()}
    unfetched: frozenset[str] = frozenset()
    try:
        dedicated.expand(written)
    except ConfigError as error:
        unfetched = frozenset(fault.key for fault in error.faults)
        for fault in error.faults:
            line = dedicated.said[fault.key].origin.line
            findings.add_objection(_FILE, fault.key, line, fault.message)
        dedicated = dedicated.forgiving()
    _Reviewer(dedicated, findings, unfetched).look()
    findings.add_notices(dedicated.notices)
    unresolved = dedicated.expand(written).unresolved
    findings.add_notices(notice for notice in unresolved if notice.key not in unfetched)
    findings.add_notices(inline_secrets(dedicated.file))
    findings.add_notices(_shared_names(dedicated, dedicated.flows()))
    findings.add_notices(without_effect(dedicated))


class _Reviewer:
    """Goes through the clusters and flows of one file."""

    def __init__(self, dedicated: Dedicated, findings: Findings, unfetched: frozenset[str]) -> None:
        self._file = dedicated
        self._findings = findings
        self._unfetched = unfetched
        """Keys of the file whose placeholders could not be fetched: they cannot be judged."""

    def look(self) -> None:
        """Look at everything."""
        self._look_at_top_level()
        flows = self._file.flows()
        if not flows:
            self._findings.add_objection(_FILE, "clusters", self._line("clusters"), NO_FLOWS)
        for alias in sorted({alias for flow in flows for alias in (flow.source, flow.target)}):
            for kind in ClientKind:
                self._look_at_clients(alias, kind)
        for flow in flows:
            for part in Part:
                self._look_at_part(flow, part)

    def _line(self, key: str) -> int | None:
        return self._file.said[key].origin.line if key in self._file.said else None

    def _look_at_top_level(self) -> None:
        said = {key: candidate.value for key, candidate in self._file.said.items()}
        expanded = self._file.expand(said).values
        try:
            found = chain(
                listener_faults(self._file.own_config()), PROCESS_ADDITIONS.faults(expanded)
            )
            faults = [conceal(fault, said, expanded) for fault in found]
        except ConfigError as error:
            faults = list(error.faults)
        self._look_for_repeats(DEDICATED, self._file.said, expanded)
        for fault in faults:
            if fault.key not in self._unfetched:
                self._findings.add_objection(_FILE, fault.key, self._line(fault.key), fault.message)

    def _look_at_clients(self, alias: str, kind: ClientKind) -> None:
        layers = self._file.cluster(alias)
        place = f"clients of {alias}"
        try:
            expanded = self._file.expand(layers.plain).values
            self._look_for_repeats(MIRROR_CLIENT, layers, expanded)
            client = self._file.client_config(alias, kind)
        except ConfigError as error:
            for fault in error.faults:
                own = fault.key if f"{kind}.{fault.key}" not in layers else f"{kind}.{fault.key}"
                self._take_down(place, layers, Fault(own, fault.message), f"{alias}.{fault.key}")
            return
        for fault in address_faults(client.get(addresses.KEY), f"{kind}.{addresses.KEY}"):
            told = conceal(fault, layers.plain, expanded)
            self._take_down(place, layers, told, f"{alias}.{addresses.KEY}")
        key = f"{kind}.{jaas.KEY}"
        if key not in layers:
            return
        try:
            self._findings.add_notices(login_notices(client, layers[key].origin.key))
        except ConfigError as error:
            self._take_down(place, layers, Fault(key, str(error)), f"{alias}.{jaas.KEY}")

    def _look_for_repeats(
        self, table: ConfigDef, written: Mapping[str, Candidate | Setting], props: Mapping[str, str]
    ) -> None:
        for name in table.repeating(props):
            origin = written[name].origin
            self._findings.add_notices([repeated_item(origin.key, origin.line)])

    def _look_at_part(self, flow: SourceAndTarget, part: Part) -> None:
        layers = compiled(self._file, flow, part)
        worker = self._file.worker_config(flow)
        if part is Part.WORKER:
            expanded = worker
            faults: Iterable[Fault] = _worker_faults(worker)
        else:
            expanded = self._file.expand(layers.plain).values
            support = worker.get("exactly.once.source.support", "").strip().lower()
            faults = _connector_faults(expanded, WorkerTerms(exactly_once=support == "enabled"))
        if part is Part.SOURCE:
            faults = chain(faults, SOURCE_ADDITIONS.faults(expanded))
        self._look_for_repeats(part.table, layers, expanded)
        for fault in faults:
            told = conceal(fault, layers.plain, expanded, _quoted(fault.key, layers))
            self._take_down(f"{flow} {part}", layers, told, f"{flow}.{told.key}")

    def _take_down(self, place: str, layers: Layers, fault: Fault, to_write: str) -> None:
        """Point at the line behind a setting; for one that is missing, at what to write."""
        written = layers.get(fault.key) or self._file.said.get(fault.key)
        if written is None:
            self._findings.add_objection(place, to_write, None, fault.message)
            return
        origin = written.origin
        if origin.key not in self._unfetched:
            key = origin.key or to_write
            self._findings.add_objection(place, key, origin.line, fault.message)


def _quoted(key: str, written: Collection[str]) -> tuple[str, ...]:
    """Other keys whose values a fault about this key may quote, or has its very name from."""
    if key == CONNECTOR_CLASS:
        return (CONNECTOR_VERSION,)
    brought_along = key not in written
    return tuple(one for one in CHAINS if brought_along and key.startswith(f"{one}."))


def _worker_faults(config: Mapping[str, str]) -> Iterator[Fault]:
    for value in DISTRIBUTED.validate(config):
        # How the worker connects has been judged with its cluster.
        if value.errors and value.name not in CLIENT_SECURITY_NAMES:
            yield Fault(value.name, value.errors[0])


def _connector_faults(config: Mapping[str, str], terms: WorkerTerms) -> Iterator[Fault]:
    try:
        validation = validate_connector(config, terms)
    except BadRequest as error:
        yield Fault(CONNECTOR_CLASS, str(error))
        return
    for finding in validation.findings:
        if finding.value.errors:
            yield Fault(finding.value.name, finding.value.errors[0])


def _shared_names(dedicated: Dedicated, flows: Iterable[SourceAndTarget]) -> Iterator[Notice]:
    users: dict[tuple[str, str, str], list[SourceAndTarget]] = {}
    for flow in flows:
        config = dedicated.worker_config(flow)
        for key in NOT_SHARED:
            users.setdefault((flow.target, key, config[key]), []).append(flow)
    for (target, key, _), sharing in users.items():
        if len(sharing) > 1:
            names = ", ".join(map(str, sharing))
            origin = dedicated.worker(sharing[0])[key].origin
            yield Notice(
                kind=NoticeKind.SHARED_BY_FLOWS,
                message=f"{names} would share {key} on {target} and disturb each other; leave it "
                "out, then each flow gets its own",
                key=origin.key,
                line=origin.line,
            )
