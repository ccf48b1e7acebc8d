"""Looks at remote partitions that hold records, before anything is appended to them.

Runs the searches of many partitions at once (`position_search`): in each round it sends the reads
of all of them together. Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.resume.existing.log_part import read_log_part
from sparkmirror.copy.driver.resume.existing.on_existing_policy import (
    ExistingDecision,
    ExistingPartition,
    decide_found,
    decide_without_search,
    needs_search,
)
from sparkmirror.copy.driver.resume.existing.position_search import (
    PositionSearch,
    ReadSource,
    ReadTarget,
    SearchAnswer,
    SearchedLogs,
    SearchRead,
    SearchResult,
    SourceOffsetAtTime,
    search_position,
)
from sparkmirror.copy.driver.resume.existing.recent_offset_syncs import read_recent_syncs
from sparkmirror.copy.job import CopyJob, StartMode
from sparkmirror.errors import BatchError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.synchronous.multi_partition_fetch import fetch_partitions
from sparkmirror.wire.protocol.topics.offsets import list_offsets

READ_BYTES = 256 << 10
"""The limit of one read; a larger batch comes whole."""
READ_TIMEOUT_S = 10.0


@dataclass(slots=True)
class ExistingRecordsFinder:
    """Decides where copying starts in partitions that hold records and have no position."""

    clusters: ClusterQueries

    def decide(
        self, job: CopyJob, partitions: Mapping[TopicPartition, ExistingPartition]
    ) -> dict[TopicPartition, ExistingDecision | str]:
        """Return the decision for each partition by its source partition, or an error text.

        After an error, decide again later.
        """
        to_search = {
            source: partition
            for source, partition in partitions.items()
            if needs_search(job.on_existing, has_transforms=bool(job.chain_of(source.topic)))
        }
        found = _SearchRounds(self.clusters, job, to_search).run() if to_search else {}
        decisions: dict[TopicPartition, ExistingDecision | str] = {
            source: decide_without_search(partition, job.on_existing)
            for source, partition in partitions.items()
            if source not in to_search
        }
        for source, result in found.items():
            decisions[source] = (
                result if isinstance(result, str) else decide_found(partitions[source], result)
            )
        return decisions


@dataclass(slots=True)
class _SearchRounds:
    """The searches of some partitions, round by round."""

    clusters: ClusterQueries
    job: CopyJob
    partitions: Mapping[TopicPartition, ExistingPartition]
    results: dict[TopicPartition, SearchResult | str] = field(default_factory=dict)
    _searches: dict[TopicPartition, PositionSearch] = field(default_factory=dict)
    _reads: dict[TopicPartition, SearchRead] = field(default_factory=dict)

    def run(self) -> dict[TopicPartition, SearchResult | str]:
        """Run all searches to their end."""
        topic, client_id = self.job.syncs, self.job.settings.client_id
        syncs = read_recent_syncs(topic, client_id, self.partitions) if topic else {}
        for source, partition in self.partitions.items():
            if partition.has_open_transaction:
                self.results[source] = (
                    f"target: {partition.target}: a transaction is open at offset"
                    f" {partition.target_range.end}; copying starts when it has ended"
                )
                continue
            self._searches[source] = search_position(
                SearchedLogs(
                    source=partition.source_range,
                    target=partition.target_range,
                    syncs=syncs.get(source, ()),
                    began_at_earliest=self.job.start.at is StartMode.EARLIEST,
                )
            )
            self._advance(source, None)
        while self._reads:
            reads, self._reads = self._reads, {}
            self._answer_target_reads(reads)
            self._answer_source_reads(reads)
            self._answer_times(reads)
        return self.results

    def _advance(self, source: TopicPartition, answer: SearchAnswer | None) -> None:
        """Give a search its answer; note its next read, or its result."""
        search = self._searches[source]
        try:
            self._reads[source] = next(search) if answer is None else search.send(answer)
        except StopIteration as ended:
            self.results[source] = ended.value

    def _answer_target_reads(self, reads: Mapping[TopicPartition, SearchRead]) -> None:
        by_target = {self.partitions[source].target: source for source in reads}
        offsets = {
            self.partitions[source].target: read.offset
            for source, read in reads.items()
            if isinstance(read, ReadTarget)
        }
        self._fetch("target", self.clusters.target, offsets, by_target, read_committed=True)

    def _answer_source_reads(self, reads: Mapping[TopicPartition, SearchRead]) -> None:
        offsets = {
            source: read.offset for source, read in reads.items() if isinstance(read, ReadSource)
        }
        by_source = {source: source for source in offsets}
        committed = self.clusters.read_committed
        self._fetch("source", self.clusters.source, offsets, by_source, read_committed=committed)

    def _fetch(
        self,
        side: str,
        router: Router,
        offsets: Mapping[TopicPartition, int],
        sources: Mapping[TopicPartition, TopicPartition],
        *,
        read_committed: bool,
    ) -> None:
        """Fetch partitions of one cluster; `sources` maps them to their source partitions."""
        fetched = fetch_partitions(
            router,
            offsets,
            partition_bytes=READ_BYTES,
            read_committed=read_committed,
            timeout_s=READ_TIMEOUT_S,
        )
        for partition, result in fetched.items():
            source = sources[partition]
            if isinstance(result, ErrorCode):
                self.results[source] = _read_error(side, partition, result)
                continue
            try:
                part = read_log_part(offsets[partition], result, read_committed=read_committed)
            except BatchError as error:
                self.results[source] = f"{side}: {partition}: {error}"
                continue
            self._advance(source, part)

    def _answer_times(self, reads: Mapping[TopicPartition, SearchRead]) -> None:
        times = {
            source: read.timestamp_ms
            for source, read in reads.items()
            if isinstance(read, SourceOffsetAtTime)
        }
        listed = list_offsets(self.clusters.source, times, timeout_s=READ_TIMEOUT_S)
        for source, outcome in listed.items():
            if outcome.value is None:
                self.results[source] = _read_error("source", source, outcome.code)
            else:
                self._advance(source, outcome.value.offset)


def _read_error(side: str, partition: TopicPartition, code: ErrorCode) -> str:
    rights = "; grant Read on the topic" if code.action is ErrorAction.NOT_AUTHORIZED else ""
    return f"{side}: {partition}: {code}{rights}"
