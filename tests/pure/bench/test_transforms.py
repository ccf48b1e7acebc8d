"""Workloads for transforms have what their chain looks for, and know what is left afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.flow import Flow
from bench.latency import kept_share
from bench.record_headers import (
    DROPPED_NAME,
    FILTERED_NAME,
    KEPT_NAME,
    MAX_BYTES,
    headers_of,
    is_kept,
)
from bench.systems import TUNED_TASKS, System, mirror_maker_properties, start_command
from bench.transform_chain import MASKED_FIELD, NO_TRANSFORMS, TOPIC_AND_HEADERS, TransformChain
from bench.transforms import HEADER_WORKLOADS, JSON_MASKED, JSON_PLAIN, JSON_WORKLOADS
from bench.workloads import Workload
from sparkmirror.transforms.lane_choice import TransformLane, connector_lane
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.record_headers import encode_header_section
from sparkmirror.wire.batch.records import Record, read_records


def flow(chain: TransformChain | None) -> Flow:
    return Flow(
        source="s:1", target="t:2", topics=("orders",), partitions=2, alias="run7", chain=chain
    )


def records(workload: Workload, seed: int) -> list[Record]:
    batch = workload.batch(seed)
    return read_records(read_header(batch), batch)


@pytest.mark.parametrize("share", [0, 10, 100])
def test_a_share_of_the_records_has_the_dropped_header_and_a_tenth_of_it_the_filtered_one(
    share: int,
) -> None:
    names = [[name.decode() for name, _ in headers_of(number, share)] for number in range(1000)]
    assert all(KEPT_NAME in some for some in names)
    assert sum(DROPPED_NAME in some for some in names) == share * 10
    assert sum(FILTERED_NAME in some for some in names) == share
    assert [FILTERED_NAME not in some for some in names] == [
        is_kept(number, share) for number in range(1000)
    ]


def test_each_small_batch_has_records_with_the_dropped_header() -> None:
    has_it = [len(headers_of(number, 10)) > 1 for number in range(1000)]
    assert all(any(has_it[at : at + 20]) for at in range(980))


def test_headers_have_at_most_the_bytes_that_a_batch_reserves() -> None:
    sections = [encode_header_section(headers_of(number, 100)) for number in range(100)]
    assert max(map(len, sections)) <= MAX_BYTES


@pytest.mark.parametrize("workload", HEADER_WORKLOADS, ids=lambda workload: workload.name)
def test_a_batch_with_headers_has_its_size_and_headers_that_no_other_batch_has(
    workload: Workload,
) -> None:
    assert 0.9 * workload.batch_bytes < len(workload.batch(seed=1)) <= workload.batch_bytes
    first, second = ({record.headers for record in records(workload, seed)} for seed in (0, 1))
    assert len(first) == len(second) == workload.records_per_batch
    assert not first & second
    assert workload.variants * workload.records_per_batch > 4096


@pytest.mark.parametrize("workload", HEADER_WORKLOADS, ids=lambda workload: workload.name)
def test_records_without_the_filtered_header_are_kept(workload: Workload) -> None:
    short = replace(workload, value_bytes=10)
    small = replace(short, records=2 * short.records_per_batch * (short.variants + 1))
    assert small.batches_per_partition(2) == small.variants + 1
    written = [records(small, seed) for seed in (*range(small.variants), 0)]
    names = [{name for name, _ in record.headers} for batch in written for record in batch]
    assert small.kept_total(2) == 2 * sum(FILTERED_NAME.encode() not in some for some in names)
    assert replace(small, chain=NO_TRANSFORMS).kept_total(2) == small.total(2)


def test_the_share_of_kept_records_at_a_steady_rate() -> None:
    assert [kept_share(share) for share in (None, 0, 10, 100)] == [1.0, 1.0, 0.99, 0.9]


def test_masked_values_are_complete_json_of_their_size() -> None:
    for record in records(JSON_MASKED, seed=1):
        assert record.value is not None
        assert len(record.value) == JSON_MASKED.value_bytes
        assert len(json.loads(record.value)[MASKED_FIELD]) == 9


def test_json_with_and_without_transforms_differs_in_nothing_else() -> None:
    one, other = (replace(w, name="", title="", chain=None) for w in JSON_WORKLOADS)
    assert one == other
    assert JSON_PLAIN.kept_total(4) == JSON_MASKED.kept_total(4) == JSON_PLAIN.total(4)


def test_chains_take_the_lanes_that_the_benchmark_compares() -> None:
    for workload, lane in (
        (HEADER_WORKLOADS[0], TransformLane.HEADERS),
        (JSON_MASKED, TransformLane.RECORDS),
        (JSON_PLAIN, TransformLane.UNCHANGED),
    ):
        assert workload.chain is not None
        choice = connector_lane(dict(workload.chain.properties))
        assert choice is not None
        assert choice.lane is lane


def test_both_systems_get_the_same_transforms(tmp_path: Path) -> None:
    properties = mirror_maker_properties(flow(TOPIC_AND_HEADERS), tuned=True)
    assert properties["run7->target.transforms"] == "route,tidy,real"
    command = start_command(System.SPARKMIRROR, flow(TOPIC_AND_HEADERS), tmp_path)
    assert command.argv[2:4] == ["sparkmirror", "run"]
    written = (tmp_path / "mm2.properties").read_text("ascii")
    assert "run7->target.transforms.tidy.headers=x-internal\n" in written
    assert start_command(System.SPARKMIRROR, flow(None), tmp_path).argv[3] == "copy"


def test_both_systems_get_as_many_tasks() -> None:
    two_tasks = replace(flow(TOPIC_AND_HEADERS), tasks=TUNED_TASKS)
    wanted = {tuned: mirror_maker_properties(two_tasks, tuned=tuned) for tuned in (False, True)}
    assert wanted[True]["tasks.max"] == str(TUNED_TASKS)
    assert wanted[False].get("tasks.max", "1") == str(TUNED_TASKS)


def test_a_routed_flow_has_other_remote_topics() -> None:
    assert flow(TOPIC_AND_HEADERS).remote_topic("orders") == "run7.orders.routed"
    assert flow(NO_TRANSFORMS).remote_topic("orders") == "run7.orders"
