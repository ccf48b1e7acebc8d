"""Batches have the size of the workload, and topics have complete batches."""

from __future__ import annotations

import pytest

from bench.flow import Flow
from bench.session import rotated_systems
from bench.systems import System, mirror_maker_properties
from bench.throughput import WORKLOADS
from bench.workloads import Workload
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header

FLOW = Flow(source="s:1", target="t:2", topics=("a", "b"), partitions=2, alias="run7", codec="lz4")


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_batch_has_the_size_and_codec_of_the_workload(workload: Workload) -> None:
    batch = workload.batch(seed=1)
    header = read_header(batch)
    assert header.record_count == workload.records_per_batch
    assert header.codec_id == workload.codec
    if workload.codec is CompressionType.NONE:
        assert 0.9 * workload.batch_bytes < len(batch) <= workload.batch_bytes
    else:
        assert 0.2 < len(batch) / workload.batch_bytes < 0.7, "it compresses as events do"


def test_a_topic_has_at_least_the_records_of_the_workload_in_complete_batches() -> None:
    workload = WORKLOADS[0]
    total = workload.total(partitions=4)
    assert total >= workload.records
    assert total % (workload.records_per_batch * 4) == 0
    assert total - workload.records < workload.records_per_batch * 4


def test_only_the_tuned_mirror_maker_is_tuned() -> None:
    default, tuned = (mirror_maker_properties(FLOW, tuned=tuned) for tuned in (False, True))
    assert default.items() <= tuned.items()
    assert not [key for key in default if ".producer." in key or ".consumer." in key]
    assert tuned["target.producer.batch.size"] == "524288"
    assert tuned["target.producer.linger.ms"] == "50"
    assert tuned["target.producer.compression.type"] == "lz4"
    assert default["run7->target.topics"] == "a, b"


def test_a_flow_names_its_remote_partitions() -> None:
    assert [str(p) for p in FLOW.remote_partitions] == [
        "run7.a-0",
        "run7.a-1",
        "run7.b-0",
        "run7.b-1",
    ]


def test_every_system_runs_in_each_round_and_each_round_starts_with_another() -> None:
    orders = [rotated_systems(number) for number in range(4)]
    assert {order[0] for order in orders} == set(System)
    assert all(set(order) == set(System) for order in orders)
