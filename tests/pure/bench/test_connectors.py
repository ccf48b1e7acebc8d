"""The figures of a worker with many idle connectors."""

from __future__ import annotations

from bench.connect_worker import source_connector_config, worker_properties
from bench.connectors import IdleSample, figures_of

SAMPLES = [
    IdleSample(1, memory_bytes=500, processes=6, cpu_share=0.01, first_record_s=9.0),
    IdleSample(5, memory_bytes=540, processes=7, cpu_share=0.02, first_record_s=0.5),
    IdleSample(20, memory_bytes=600, processes=7, cpu_share=0.04, first_record_s=0.4),
    IdleSample(50, memory_bytes=990, processes=8, cpu_share=0.08, first_record_s=0.6),
]


def test_each_sample_has_figures_with_its_number_of_connectors() -> None:
    figures = figures_of(SAMPLES)
    assert figures["memory_bytes_1"] == 500
    assert figures["processes_5"] == 7
    assert figures["first_record_s_20"] == 0.4
    assert figures["cpu_share_50"] == 0.08


def test_a_further_connector_costs_the_growth_from_the_first_to_the_last_sample() -> None:
    assert figures_of(SAMPLES)["bytes_per_connector"] == (990 - 500) / 49


def test_further_processes_count_from_the_second_sample() -> None:
    assert figures_of(SAMPLES)["further_processes"] == 1


def test_both_workers_get_internal_topics_of_their_group_and_one_listener() -> None:
    properties = worker_properties("127.0.0.1:9092", "east-workers", 8083)
    assert properties["listeners"] == "http://127.0.0.1:8083"
    assert {properties[f"{name}.storage.topic"] for name in ("config", "offset", "status")} == {
        "east-workers-configs",
        "east-workers-offsets",
        "east-workers-statuses",
    }
    assert source_connector_config("east", "a:1", "b:2", "orders")["tasks.max"] == "1"
