"""Words that are persisted, scripted against or shown to people. None may change by a rename.

Another release of sparkmirror, Java MirrorMaker 2, a dashboard or a script reads each of them.
"""

from __future__ import annotations

import inspect
from dataclasses import fields

import sparkmirror.client
from sparkmirror.cli import kafka_scripts, main
from sparkmirror.cli.copy import plan_and_run
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.fencing import transactional_id_fencing
from sparkmirror.copy.driver.fencing.producer_support import ProducerSupport
from sparkmirror.copy.driver.resume.data_loss import LossKind
from sparkmirror.copy.driver.resume.existing.on_existing_policy import (
    ADOPTED,
    EXISTING_RECORDS,
    FOREIGN_RECORDS,
)
from sparkmirror.copy.driver.tracked_partition import LeaseState
from sparkmirror.copy.job import DataLossPolicy, ExistingRecordsPolicy, StartMode
from sparkmirror.copy.lease import NOT_IDEMPOTENT, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, LedgerExtension, decode_entry, encode_entry
from sparkmirror.copy.snapshot import CopyEvent, PartitionView
from sparkmirror.engine.driver.spark_conf import CONTROL_PORT_KEY, CONTROL_PROTOCOL_KEY
from sparkmirror.engine.spark import receipt_rows
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.mirror.offsets.run_map_records import (
    RunMapSegment,
    RunMapSegmentKey,
    encode_segment,
)
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.lanes.lane_reason import Lane, LaneReason
from sparkmirror.worker.partition_states import IdleState

LEDGER = {
    "offset": 41,
    "target": 57,
    "pid": 1001,
    "epoch": 3,
    "anchor": -7,
    "open": True,
    "records": 40,
    "source_id": "aa",
    "target_id": "bb",
    "source_epoch": 2,
}


def test_the_members_of_a_ledger_entry() -> None:
    entry = LedgerEntry(
        position=42,
        extension=LedgerExtension(
            expected=57,
            identity=LeaseIdentity(producer_id=1001, producer_epoch=3, anchor=-7),
            is_open=True,
            records=40,
            source_topic_id="aa",
            target_topic_id="bb",
            source_epoch=2,
        ),
    )
    assert encode_entry(entry) == LEDGER
    assert list(encode_entry(entry)) == list(LEDGER)
    assert decode_entry(LEDGER) == entry


def test_the_members_of_a_ledger_entry_with_transformations() -> None:
    stored = LEDGER | {"chain": "ab12"}
    entry = decode_entry(stored)
    assert entry and entry.extension
    assert entry.extension.chain == "ab12"
    assert encode_entry(entry) == stored


def test_the_members_of_a_ledger_entry_whose_remote_topic_has_a_name_of_its_own() -> None:
    stored = LEDGER | {"chain": "ab12", "remote": "routed"}
    entry = decode_entry(stored)
    assert entry and entry.extension
    assert entry.extension.stored_remote == "routed"
    assert list(encode_entry(entry).items()) == list(stored.items())


def test_the_members_of_a_closed_ledger_entry_without_a_producer_id() -> None:
    stored = LEDGER | {"pid": -2, "epoch": -1, "closed": True}
    entry = decode_entry(stored)
    assert entry and entry.extension
    assert not entry.extension.is_open
    assert encode_entry(entry) == stored
    assert list(encode_entry(entry)) == list(stored)


def test_the_record_of_a_run_map_segment() -> None:
    key = RunMapSegmentKey(
        connector="a->b", cluster="a", partition=TopicPartition("orders", 3), number=5
    )
    runs = RunMap()
    runs.append(0, 10, 4)
    stored = encode_segment(
        key,
        RunMapSegment(runs=runs, source_position=4, next_target_offset=14, target_topic_id="bb"),
    )
    assert stored.connector == "sparkmirror:runs:a->b"
    assert stored.partition == {"cluster": "a", "partition": 3, "segment": 5, "topic": "orders"}
    assert stored.offset is not None
    assert {**stored.offset, "runs": ""} == {
        "runs": "",
        "source": 4,
        "target": 14,
        "target_id": "bb",
    }


def test_partition_states_event_kinds_and_lane_reasons() -> None:
    assert [state.value for state in LeaseState] == ["waiting", "leased", "doubtful", "held"]
    assert [state.value for state in IdleState] == ["paused", "stopped"]
    assert [kind.value for kind in LossKind] == [
        "retention",
        "truncated",
        "recreated",
        "remote-recreated",
    ]
    assert [how.value for how in LeaseEndReason] == HOW_A_LEASE_ENDS
    assert [lane.value for lane in Lane] == ["forward", "reopen", "upgrade", "transform", "skip"]
    assert {reason.value: reason.lane.value for reason in LaneReason} == LANE_REASONS
    assert [policy.value for policy in DataLossPolicy] == ["halt", "skip", "restart"]
    assert [policy.value for policy in ExistingRecordsPolicy] == ["adopt", "append", "halt"]
    assert (ADOPTED, FOREIGN_RECORDS, EXISTING_RECORDS) == (
        "adopted",
        "foreign-records",
        "existing-records",
    )
    assert [start.value for start in StartMode] == ["earliest", "latest", "timestamp", "offsets"]
    assert [mode.value for mode in DeliveryMode] == ["sequenced", "exactly-once", "at-least-once"]
    missing = ProducerSupport(has_producer_ids=False), ProducerSupport(has_transactions=False)
    assert [support.event and support.event[0] for support in missing] == [
        "at-least-once",
        "no-fence",
    ]
    assert NOT_IDEMPOTENT == -2


HOW_A_LEASE_ENDS = [
    "closed",
    "ambiguous",
    "fenced",
    "out-of-range",
    "source-gone",
    "target-gone",
    "refused",
    "not-authorized",
    "codec-refused",
    "topic-wanted",
]
LANE_REASONS = {
    "plain": "forward",
    "delete-horizon-cleared": "forward",
    "restamped-by-target": "forward",
    "small-batches-merged": "reopen",
    "starts-before-position": "reopen",
    "compacted": "reopen",
    "log-append-time": "reopen",
    "larger-than-target-allows": "reopen",
    "codec-unknown-to-target": "reopen",
    "old-message-format": "upgrade",
    "transformed": "transform",
    "already-copied": "skip",
    "control": "skip",
    "emptied-by-compaction": "skip",
    "aborted-transaction": "skip",
    "filtered": "skip",
}


def test_what_a_status_says_of_a_partition_and_of_an_event() -> None:
    assert [one.name for one in fields(PartitionView)] == [
        *("remote", "task", "state", "position", "expected", "end", "records", "bytes"),
        *("copied", "suppressed", "filtered", "skipped", "failures"),
        *("active", "queued_bytes", "newest_ms"),
        "ages",
        *("reason", "halted", "delivery"),
    ]
    assert [one.name for one in fields(CopyEvent)] == [
        *("at_ms", "kind", "partition", "text", "lost_from", "lost_to"),
    ]


def test_the_columns_of_receipts() -> None:
    assert tuple(column.rpartition(" AS ")[2] for column in receipt_rows.TABLE_COLUMNS) == (
        *("flow", "topic", "partition", "remote_topic"),
        *("source_first", "source_last", "target_first", "target_last"),
        *("records", "bytes", "lanes", "first_time", "last_time"),
        *("epoch", "task", "attempt", "outcome", "started", "ended", "day"),
    )
    assert (
        receipt_rows.OUTCOME_DONE,
        receipt_rows.OUTCOME_LOST,
        receipt_rows.PARTITION_COLUMN,
    ) == ("done", "lost", "day")


def test_configuration_keys_of_our_own() -> None:
    assert {key.name for key in SOURCE_ADDITIONS} >= {
        "sparkmirror.on.loss",
        "sparkmirror.on.existing",
        "sparkmirror.bytes.per.second",
        "sparkmirror.transform.key.format",
        "sparkmirror.transform.value.format",
        "sparkmirror.transform.header.format",
        "sparkmirror.transform.sql",
        "sparkmirror.transform",
        "sparkmirror.errors.deadletterqueue.topic.name",
        "sparkmirror.errors.deadletterqueue.topic.replication.factor",
        "sparkmirror.errors.deadletterqueue.context.headers.enable",
    }
    assert {key.name for key in PROCESS_ADDITIONS} >= {
        "sparkmirror.receipts",
        "sparkmirror.log.dir",
        "sparkmirror.epoch.seconds",
        "sparkmirror.rest.bearer.tokens.file",
        "sparkmirror.metrics.listener",
        "sparkmirror.metrics.detail",
        "sparkmirror.metrics.names",
        "sparkmirror.metrics.max.series",
    }
    assert CONTROL_PORT_KEY == "spark.sparkmirror.control.port"
    assert CONTROL_PROTOCOL_KEY == "spark.sparkmirror.control.protocol"
    assert [protocol.value for protocol in ControlProtocol] == ["encrypted-frames", "tls-psk"]


def test_exit_codes() -> None:
    assert (main.BAD_USAGE, main.FAILED, main.INTERRUPTED) == (1, 2, 130)
    assert (plan_and_run.DONE, plan_and_run.FAILED, plan_and_run.INTERRUPTED) == (0, 2, 130)
    assert (
        kafka_scripts.EXIT_BAD_ARGUMENTS,
        kafka_scripts.EXIT_USAGE,
        kafka_scripts.EXIT_ERROR,
    ) == (255, 1, 2)


def test_commands() -> None:
    assert set(main.COMMANDS) >= {
        *("config", "copy", "demo", "groups", "lab", "run", "status", "transform", "worker"),
    }


def test_the_last_part_of_the_conductors_transactional_id() -> None:
    assert transactional_id_fencing.CONDUCTOR == "conductor"


def test_the_client_for_failover_code() -> None:
    module = sparkmirror.client
    assert {name for name, _ in inspect.getmembers(module, inspect.isfunction)} >= {
        *("translate_offsets", "replication_hops", "upstream_clusters", "heartbeat_topics"),
        "checkpoint_topics",
    }
    methods = {name for name in vars(module.MirrorClient) if not name.startswith("_")}
    assert methods == {
        *("replication_policy", "heartbeat_topics", "checkpoint_topics", "upstream_clusters"),
        *("replication_hops", "remote_topics", "remote_consumer_offsets"),
        *("remote_consumer_offsets_matching", "close"),
    }
    parameters = inspect.signature(module.MirrorClient.remote_consumer_offsets).parameters
    assert list(parameters)[:3] == CONSUMER_OFFSETS


CONSUMER_OFFSETS = ["self", "group", "upstream"]
