"""Every query of the rules and dashboards asks only for what the workers export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from sparkmirror.connect.herder import worker_health
from sparkmirror.copy.driver.resume.data_loss import LossKind
from sparkmirror.copy.driver.tracked_partition import LeaseState
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState
from sparkmirror.worker.partition_states import IdleState
from tests.support.metric_definitions import DEFINITIONS
from tests.support.prometheus.promql import read_names
from tests.support.prometheus.queries import (
    DASHBOARDS,
    DEPLOY,
    RULES,
    Query,
    all_rules,
    dashboard_queries,
    load_yaml,
    recorded_labels,
    rule_queries,
)

SCRAPE_LABELS = {"job", "instance"}
"""What Prometheus adds to every series that it scrapes."""
WORDS: Mapping[tuple[str, str], set[str]] = {
    ("sparkmirror_partitions", "state"): {*LeaseState, *IdleState},
    ("sparkmirror_lost_records_total", "kind"): set(LossKind),
    ("sparkmirror_events_total", "kind"): {*LossKind, "remote-truncated"},
    ("sparkmirror_worker_health", "status"): {
        *(worker_health.STARTING, worker_health.HEALTHY),
        *(worker_health.DEGRADED, worker_health.UNHEALTHY),
    },
    ("kafka_connect_connector_status", "status"): {one.value.lower() for one in LifecycleState},
}
"""The values that labels have."""
GRAFANA_VARIABLE = re.compile(r"\$\w+")


def exported_labels(metric: str) -> set[str] | None:
    """The labels that a metric has in Prometheus; None if there is no such metric."""
    if metric == "up":
        return SCRAPE_LABELS
    if metric in recorded_labels():
        return recorded_labels()[metric]
    definition = DEFINITIONS.get(metric)
    return None if definition is None else {*definition.all_labels, *SCRAPE_LABELS}


def faults(query: Query) -> list[str]:
    """What a query uses and no worker exports."""
    names = read_names(GRAFANA_VARIABLE.sub("x", query.text))
    found, known = [], set[str]()
    for selector in names.selectors:
        labels = exported_labels(selector.metric)
        if labels is None:
            found.append(f"metric {selector.metric}")
            continue
        known |= labels
        found += [f"label {label}" for label in selector.matchers.keys() - labels]
        for label, value in selector.matchers.items():
            words = WORDS.get((selector.metric, label))
            if words is not None:
                found += [f"value {word}" for word in value.split("|") if word not in words]
    found += [f"label {label}" for label in {*names.grouping} - known]
    kept = {*names.grouping} if re.search(r"\bby\b", query.text) else known
    return found + [f"shown label {label}" for label in query.shown - kept]


QUERIES = [*rule_queries(), *dashboard_queries()]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_a_query_uses_only_what_is_exported(query: Query) -> None:
    assert faults(query) == []


def test_the_queries_are_those_of_all_files() -> None:
    assert len(RULES) == 2 and len(DASHBOARDS) == 3
    assert len(QUERIES) > 90


@pytest.mark.parametrize(
    ("text", "shown", "fault"),
    [
        ("sparkmirror_lag_record", "", "metric sparkmirror_lag_record"),
        ('sparkmirror_lag_records{cluster="x"}', "", "label cluster"),
        ("sum by (flow) (sparkmirror_lag_records)", "", "label flow"),
        ('sparkmirror_partitions{state=~"held|stuck"}', "", "value stuck"),
        ("sum by (source) (sparkmirror_lag_records)", "topic", "shown label topic"),
        ("sparkmirror_problems", "topic", "shown label topic"),
    ],
)
def test_a_wrong_name_is_found(text: str, shown: str, fault: str) -> None:
    assert faults(Query("x", text, frozenset(filter(None, [shown])))) == [fault]


@pytest.mark.parametrize("text", ["sum(", "a b {", "sums(x)", 'x{a~"b"}', "x{a}", "`"])
def test_what_is_no_query_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_names(text)


def test_every_metric_of_our_own_is_asked_for_somewhere() -> None:
    texts = " ".join(query.text for query in QUERIES)
    unused = {name for name in DEFINITIONS if name.startswith("sparkmirror_") and name not in texts}
    assert unused == set()


def test_alerts_say_what_happened_and_what_to_do() -> None:
    alerts = [rule for rule in all_rules() if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    for rule in alerts:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}


def test_prometheus_scrapes_the_jobs_of_the_tutorial_and_loads_the_rules() -> None:
    config = load_yaml(DEPLOY / "prometheus" / "prometheus.yml")
    assert [job["job_name"] for job in config["scrape_configs"]] == [
        "kafka-source-exporter",
        "kafka-target-exporter",
        "kafka-connect-exporter",
        "kafka-mirror-maker-exporter",
    ]
    assert config["scrape_configs"][2]["static_configs"][0]["targets"] == [
        "kafka-connect-0:9404",
        "kafka-connect-1:9404",
    ]
    [pattern] = config["rule_files"]
    assert sorted((DEPLOY / "prometheus").glob(pattern)) == RULES


STRIMZI_KINDS = {
    "kafka-connect-exporter": "KafkaConnect",
    "kafka-mirror-maker-exporter": "KafkaMirrorMaker2",
}


@pytest.mark.parametrize("directory", ["prometheus", "compose/001/prometheus"])
def test_jobs_of_workers_have_the_labels_that_strimzis_dashboards_ask_for(directory: str) -> None:
    config = load_yaml(DEPLOY / directory / "prometheus.yml")
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert "kafka-connect-exporter" in jobs
    for name, kind in STRIMZI_KINDS.items():
        for targets in jobs.get(name, {}).get("static_configs", ()):
            assert targets["labels"]["strimzi_io_kind"] == kind
            assert targets["labels"].keys() == {
                "namespace",
                "strimzi_io_cluster",
                "strimzi_io_kind",
            }
        for rule in jobs.get(name, {}).get("relabel_configs", ()):
            assert rule["target_label"] == "kubernetes_pod_name"


def test_rules_and_dashboards_that_ask_for_workers_know_all_their_jobs() -> None:
    selectors = [one for query in QUERIES for one in read_names(query.text).selectors]
    jobs = [one.matchers["job"] for one in selectors if "job" in one.matchers]
    assert len(jobs) == 3
    assert {frozenset(each.split("|")) for each in jobs} == {
        frozenset({*STRIMZI_KINDS, "sparkmirror"})
    }


def test_grafana_finds_its_data_source_and_its_dashboards() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    [source] = load_yaml(provisioning / "datasources" / "prometheus.yml")["datasources"]
    assert (source["uid"], source["url"]) == ("prometheus", "http://prometheus:9090")
    [provider] = load_yaml(provisioning / "dashboards" / "sparkmirror.yml")["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text("utf-8"))
        chosen = dashboard["templating"]["list"][0]
        assert (chosen["type"], chosen["current"]["value"]) == ("datasource", source["uid"])
        ids = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(ids)) == len(ids)
        assert all(
            panel["datasource"]["uid"] == "${datasource}"
            and all(one["datasource"] == panel["datasource"] for one in panel["targets"])
            for panel in dashboard["panels"]
        )
