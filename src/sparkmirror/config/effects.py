"""The keys of a dedicated file that have no effect, each with the reason and what to write.

MirrorMaker 2 says nothing about any of them. The reasons follow from where a key landed, if it did
(see `landings`), and from the form of the key: below a flow, below a cluster, or at the top level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkmirror.config.dedicated import CLUSTERS, SWITCHES, Dedicated
from sparkmirror.config.flowrules import CLIENT_KINDS, PROVIDER_KEYS
from sparkmirror.config.landings import Landing, Landings, landings
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.parts import NOT_RUN, Part
from sparkmirror.config.retired import POINTLESS
from sparkmirror.config.suggestions import suggestion
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.connectors import ALL_CONNECTOR_NAMES
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.rest_server import WORKER_REST
from sparkmirror.config.value import split
from sparkmirror.model import SourceAndTarget

MOST_SUGGESTIONS = 100
"""Looking for what was meant takes a while; a file with more unknown keys is no config file."""

_CONNECTOR_KEYS = tuple(
    sorted(ALL_CONNECTOR_NAMES.union(*(part.table.names for part in Part if part.connector)))
)
_CLUSTER_KEYS = tuple(sorted({*CLIENT_SECURITY_NAMES, *DISTRIBUTED.names}))
_FOR_ALL_FLOWS = ALL_CONNECTOR_NAMES.union(SOURCE_ADDITIONS.names)
_TOP_LEVEL_KEYS = tuple(sorted({*_FOR_ALL_FLOWS, *DEDICATED.names, *PROCESS_ADDITIONS.names}))
_CLIENTS = tuple(f"{kind}." for kind in CLIENT_KINDS)
_PROCESS_PREFIXES = ("listeners.https.", "admin.listeners.https.")
_NOT_RUN = re.compile(rf"(?:^|\.)(?:{'|'.join(NOT_RUN)})(?:\.|$)")
_FLOW_FORM = re.compile(r"(?P<source>.+?)->(?P<target>[^.]+)\.(?P<name>.+)")


def without_effect(dedicated: Dedicated) -> tuple[Notice, ...]:
    """One notice for each key of the file that changes nothing, in the order of the file."""
    return tuple(_Reasons(dedicated, landings(dedicated)).notices())


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a key has no effect; if nobody knows its name, which names might have been meant."""

    text: str
    instead_of: str = ""
    known: Sequence[str] = ()
    below: str = ""
    """The prefix under which the name stands."""


class _Reasons:
    """Finds the reason for each key of one file."""

    def __init__(self, dedicated: Dedicated, landed: Landings) -> None:
        self._file = dedicated
        self._landed = landed
        self._flows = dedicated.flows()
        self._own = self._keys_of_the_process()
        named = dedicated.said.get(PROVIDER_KEYS)
        self._providers = frozenset(split(named.value) if named else ())
        self._suggestions_left = MOST_SUGGESTIONS

    def notices(self) -> Iterator[Notice]:
        """Go through the file."""
        for key, candidate in self._file.said.items():
            if key in self._own or key in POINTLESS:
                continue
            found = self._landed.get(candidate.origin.key, [])
            if any(landing.takes_effect for landing in found) and not self._is_idle_provider(key):
                yield from self._half_effect(key, found)
            else:
                yield self._notice(key, f"has no effect: {self._told(self._reason(key, found))}")

    def _keys_of_the_process(self) -> frozenset[str]:
        """What the process reads itself: its own settings, and which flows it shall run."""
        switches = {f"{pair}.{name}" for pair in self._file.pairs for name in SWITCHES} | SWITCHES
        tables = {*DEDICATED.names, *PROCESS_ADDITIONS.names}
        names = switches.union(tables).difference(CLIENT_SECURITY_NAMES)
        below = {key for key in self._file.said if key.startswith(_PROCESS_PREFIXES)}
        return frozenset(names | below | self._file.spark.keys())

    def _is_idle_provider(self, key: str) -> bool:
        """Whether the key sets up a provider that `config.providers` does not name."""
        if not key.startswith(f"{PROVIDER_KEYS}."):
            return False
        name, _, _ = key.removeprefix(f"{PROVIDER_KEYS}.").partition(".")
        return name not in self._providers

    def _notice(self, key: str, message: str) -> Notice:
        return Notice(
            kind=NoticeKind.NO_EFFECT,
            message=message,
            file=self._file.file.file,
            line=self._file.said[key].origin.line,
            key=key,
        )

    def _half_effect(self, key: str, found: list[Landing]) -> Iterator[Notice]:
        """`A->B.producer.*` looks as if it set up the producer of the data."""
        flow = found[0].flow
        prefix = f"{flow}.producer."
        name = key.removeprefix(prefix)
        if key.startswith(prefix) and not name.startswith("override."):
            message = (
                "reaches only the producer of offset syncs, not that of the data: write "
                f"{prefix}override.{name} or {flow.target}.producer.{name}"
            )
            yield self._notice(key, message)

    def _told(self, reason: _Reason) -> str:
        if not reason.instead_of or not self._suggestions_left:
            return reason.text
        self._suggestions_left -= 1
        meant = suggestion(reason.instead_of, reason.known)
        return f"{reason.text}; did you mean {reason.below}{meant}?" if meant else reason.text

    # -- reasons, by the form of the key

    def _reason(self, key: str, found: list[Landing]) -> _Reason:
        if self._is_idle_provider(key):
            return _Reason(f"{PROVIDER_KEYS} does not name this provider")
        if _NOT_RUN.search(key):
            return _Reason("transformations are not run here: records are copied as they are")
        for pair in self._file.pairs:
            if key.startswith(f"{pair}."):
                return self._below_flow(pair, key.removeprefix(f"{pair}."), found)
        if form := _FLOW_FORM.fullmatch(key):
            return self._below_unknown_flow(form)
        for alias in sorted(self._file.clusters, key=len, reverse=True):
            if key.startswith(f"{alias}."):
                return self._below_cluster(alias, key.removeprefix(f"{alias}."), found)
        return self._at_top_level(key, found)

    def _below_flow(self, pair: SourceAndTarget, name: str, found: list[Landing]) -> _Reason:
        if pair not in self._flows:
            return _Reason(f"the flow {pair} does not run; set {pair}.enabled=true to run it")
        if any(landing.is_read for landing in found):
            return _Reason(f"the flow {pair} is not enabled; set {pair}.enabled=true")
        if name in CLIENT_SECURITY_NAMES:
            return _Reason(
                f"clients do not read it from a flow; write {pair.source}.{name} or "
                f"{pair.target}.{name}"
            )
        if name in DISTRIBUTED and name not in WORKER_REST:
            return _Reason(f"workers do not read settings of a flow; write {pair.target}.{name}")
        for side in ("source", "target"):
            if name.startswith(f"{side}.cluster."):
                setting = name.removeprefix(f"{side}.cluster.")
                return _Reason(
                    f"below {side}.cluster. only connection and security settings are read; "
                    f"write {pair}.{side}.consumer.{setting}, or .producer. or .admin."
                )
        return _Reason(f"no connector reads {name}", name, _CONNECTOR_KEYS, f"{pair}.")

    def _below_unknown_flow(self, form: re.Match[str]) -> _Reason:
        source, target = form["source"], form["target"]
        if source == target:
            return _Reason("a flow needs two different clusters")
        unknown = [alias for alias in (source, target) if alias not in self._file.clusters]
        return self._unknown_cluster(unknown[0])

    def _unknown_cluster(self, alias: str) -> _Reason:
        listed = ", ".join(split(self._file.said[CLUSTERS].value))
        return _Reason(f"{CLUSTERS} lists {listed}, not {alias}", alias, self._file.clusters)

    def _below_cluster(self, alias: str, name: str, found: list[Landing]) -> _Reason:
        if not any(alias in (flow.source, flow.target) for flow in self._flows):
            return _Reason(f"no flow from or to {alias} runs")
        if beaten := _beaten(found):
            return beaten
        if any(landing.is_read for landing in found):
            return _Reason(f"no flow from or to {alias} is enabled")
        if name in WORKER_REST:
            return _Reason(f"the process has one REST server; write {name} without {alias}.")
        if Part.WORKER.reads(name):
            return _Reason(
                f"settings of {alias}'s workers serve the flows into {alias}, and none runs"
            )
        if name in _CONNECTOR_KEYS:
            for_all = f", or {name} for all flows" if name in _FOR_ALL_FLOWS else ""
            flow = self._example_flow(alias)
            return _Reason(
                f"connectors do not read it from a cluster; write {flow}.{name}{for_all}"
            )
        return _Reason(
            f"{name} is neither a connection, security nor worker setting; for clients write "
            f"{alias}.consumer.{name}, or .producer. or .admin.",
            name,
            _CLUSTER_KEYS,
            f"{alias}.",
        )

    def _at_top_level(self, key: str, found: list[Landing]) -> _Reason:
        if beaten := _beaten(found):
            return beaten
        if any(landing.is_read for landing in found):
            return _Reason(f"no flow is enabled; set {self._example_flow()}.enabled=true")
        if key in DISTRIBUTED:
            alias = self._example_flow().target
            return _Reason(f"workers read it only below their cluster; write {alias}.{key}")
        if key.startswith(_CLIENTS):
            flow = self._example_flow()
            return _Reason(
                f"clients read it only below a cluster; write {flow.source}.{key} or "
                f"{flow.target}.{key}"
            )
        if any(part.reads(key) for part in Part if part.connector):
            return _Reason(
                f"connectors read it only below a flow; write {self._example_flow()}.{key}"
            )
        return self._unknown_at_top_level(key)

    def _unknown_at_top_level(self, key: str) -> _Reason:
        alias, _, name = key.partition(".")
        if name in _CLUSTER_KEYS or name.startswith(_CLIENTS):
            return self._unknown_cluster(alias)
        return _Reason("nothing reads it", key, _TOP_LEVEL_KEYS)

    def _example_flow(self, target: str = "") -> SourceAndTarget:
        flows = [*self._flows, *self._file.pairs]
        into = [flow for flow in flows if target in (flow.target, flow.source)]
        return (into or flows or [SourceAndTarget("A", "B")])[0]


def _beaten(found: list[Landing]) -> _Reason | None:
    """The key would have been read, had another not won."""
    for landing in found:
        if landing.is_read and landing.is_active and landing.lost_to is not None:
            winner = landing.lost_to
            return _Reason(f"{winner.key} on line {winner.line} wins")
    return None
