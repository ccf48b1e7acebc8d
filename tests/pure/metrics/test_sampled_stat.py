"""Windows of rates, averages and maxima, as Kafka's metrics have them."""

from __future__ import annotations

import math

import pytest

from sparkmirror.metrics.sampled_stat import MetricConfig, SampledStat, Values, merge_values

S = 1000.0


def test_a_rate_assumes_one_whole_sample_at_least() -> None:
    stat = SampledStat()
    stat.record(60, 0.0)
    assert stat.rate(0.0) == 60 / 30
    assert stat.rate(1 * S) == 60 / 31
    assert stat.rate(29 * S) == pytest.approx(60 / 59)


def test_a_rate_divides_by_the_age_of_the_oldest_sample() -> None:
    stat = SampledStat()
    stat.record(30, 0.0)
    stat.record(30, 40 * S)
    assert stat.rate(45 * S) == pytest.approx(60 / 45)


def test_a_sample_counts_until_its_last_event_is_older_than_the_window() -> None:
    stat = SampledStat()
    stat.record(1, 0.0)
    stat.record(2, 10 * S)
    stat.record(4, 31 * S)
    assert stat.sum(69 * S) == 7
    assert stat.sum(70 * S) == 4
    assert stat.sum(91 * S) == 0
    assert stat.rate(91 * S) == 0


def test_averages_and_maxima_without_a_value_are_not_a_number() -> None:
    stat = SampledStat()
    assert math.isnan(stat.average(0.0)) and math.isnan(stat.maximum(0.0))
    stat.record(5, 0.0)
    stat.record(1, 31 * S)
    assert (stat.average(31 * S), stat.maximum(31 * S)) == (3, 5)
    assert (stat.average(60 * S), stat.maximum(60 * S)) == (1, 1)
    assert math.isnan(stat.average(91 * S)) and math.isnan(stat.maximum(91 * S))


def test_the_number_and_the_length_of_samples_are_settings() -> None:
    stat = SampledStat(MetricConfig(samples=3, window_ms=1000))
    for second in range(4):
        stat.record(1, second * S)
    assert stat.sum(2.9 * S + 100) == 3
    assert stat.rate(3 * S) == pytest.approx(3 / 2)


def test_several_values_at_once_count_like_each_of_them() -> None:
    one_by_one, at_once = SampledStat(), SampledStat()
    for value in (4, 1, 7):
        one_by_one.record(value, 5 * S)
    at_once.record_many(Values(count=3, total=12, lowest=1, highest=7), 5 * S)
    assert at_once.values(6 * S) == one_by_one.values(6 * S) == Values(3, 12, 1, 7)
    assert at_once.average(6 * S) == 4


def test_values_of_parts_are_merged_and_empty_parts_do_not_count() -> None:
    parts = [Values(2, 10, 4, 6), Values(), Values(1, 1, 1, 1)]
    assert merge_values(parts) == Values(3, 11, 1, 6)
    assert math.isnan(merge_values([Values()]).average)
