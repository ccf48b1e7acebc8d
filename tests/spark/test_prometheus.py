"""A real Prometheus scrapes a mirror: every query of every dashboard and rule is evaluated."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.metrics.definition import RuleSet
from sparkmirror.metrics.names.exposed_names import exposed_metrics
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, running_mirror_maker
from tests.support.cli.property_files import flow_properties
from tests.support.metric_definitions import DEFINITIONS
from tests.support.prometheus.prometheus_program import needs_prometheus
from tests.support.prometheus.prometheus_server import PrometheusServer, running_prometheus
from tests.support.prometheus.promql import read_names
from tests.support.prometheus.queries import (
    DEPLOY,
    Query,
    dashboard_queries,
    load_yaml,
    recorded_labels,
    rule_queries,
    strimzi_queries,
)
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

pytestmark = needs_prometheus
RECORDS = 100
MAX_AGE_MS = 10 * 60 * 1000
EAST, WEST = "prom-east", "prom-west"
MIRROR_JOB, CONNECT_JOB = "kafka-mirror-maker-exporter", "kafka-connect-exporter"
"""Strimzi's dashboards ask for workers of different kinds, which the jobs name."""
CONNECT_DASHBOARD = "strimzi-kafka-connect:"
NO_EVENT = "no partition had an event"
NO_LOSS = "no record was lost"
NO_TROUBLE = "no task has failed, is paused or without a worker"
NO_JVM = "the worker has no JVM; process_* has its memory and processor time"
IN_SPARK = "the connections of tasks are in Spark's processes, which report no number of them"
CADVISOR = "figures of containers come from Kubernetes, not from the worker"
WITHOUT_DATA: Mapping[str, str] = {
    "flows.json: Events by kind": NO_EVENT,
    "flow.json: Events by kind": NO_EVENT,
    "groups.json: Lost records": NO_LOSS,
    "groups.json: Groups that are not translated exactly": "every offset is translated exactly",
    "strimzi-kafka-mirror-maker-2: CPU Usage": CADVISOR,
    "strimzi-kafka-mirror-maker-2: JVM Memory": NO_JVM,
    "strimzi-kafka-mirror-maker-2: Time Spent in GC": NO_JVM,
    "strimzi-kafka-mirror-maker-2: JVM Thread Count": NO_JVM,
    "strimzi-kafka-connect: CPU Usage": CADVISOR,
    "strimzi-kafka-connect: JVM Memory": NO_JVM,
    "strimzi-kafka-connect: Time Spent in GC": NO_JVM,
    "strimzi-kafka-connect: JVM Thread Count": NO_JVM,
    "strimzi-kafka-connect: Connection Count": IN_SPARK,
    "strimzi-kafka-connect: Connector Tasks with Issues": NO_TROUBLE,
}
"""The queries of dashboards that return nothing here, and why."""
METRICS_WITHOUT_DATA: Mapping[str, str] = {
    "sparkmirror_events_total": NO_EVENT,
    "sparkmirror_lost_records_total": NO_LOSS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedMirror:
    """A mirror with one flow, and the Prometheus that scrapes it.

    Another one scrapes it as a Connect worker: Strimzi's dashboard for Connect joins series by
    connector, so that no server may have them twice.
    """

    prometheus: PrometheusServer
    connect_prometheus: PrometheusServer
    clusters: MirroredClusters
    topic: str

    def copy_records(self) -> None:
        """Write records to the source, and wait until they are copied."""
        self.clusters.write_records(self.topic, range(RECORDS))
        remote = f"{EAST}.{self.topic}"
        self.clusters.wait_until_copied(self.topic, remote, timeout_s=SPARK_TIMEOUT_S)

    def missing(self) -> list[str]:
        """The queries that return nothing, and should not."""
        return [
            query.place
            for query in (*dashboard_queries(), *strimzi_queries())
            if reason(query) is None and not self.samples(query)
        ]

    def samples(self, query: Query) -> list[dict[str, Any]]:
        is_connect = query.place.startswith(CONNECT_DASHBOARD)
        server = self.connect_prometheus if is_connect else self.prometheus
        return server.query(localized(query.text))


@pytest.fixture(scope="module")
def scraped(
    mirrored_clusters: MirroredClusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ScrapedMirror]:
    """The metrics have a port of their own with TLS. A group reads the topic at the source."""
    directory = tmp_path_factory.mktemp("prometheus")
    mark = secrets.token_hex(3)
    topic, group = f"orders-{mark}", f"billing-{mark}"
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    mirrored_clusters.commit_group_offset(group, topic, RECORDS)
    authority = CertificateAuthority.create(directory / "tls")
    metrics_port, first_port, second_port = PortRegistry().claim(3, directory)
    file = flow_properties(mirrored_clusters, (EAST, WEST), topic, group) | {
        "sparkmirror.metrics.names": "strimzi,jmx,aws",
        "sparkmirror.metrics.listener": f"https://127.0.0.1:{metrics_port}",
        "listeners.https.ssl.keystore.location": str(authority.issue("worker")),
    }
    with running_mirror_maker(file, directory / "mirror"):
        mirrored_clusters.wait_until_copied(topic, f"{EAST}.{topic}", timeout_s=SPARK_TIMEOUT_S)
        address = f"127.0.0.1:{metrics_port}"
        with (
            running_prometheus(
                scrape_job(MIRROR_JOB, address), new_directory(directory, "1"), first_port
            ) as prometheus,
            running_prometheus(
                scrape_job(CONNECT_JOB, address), new_directory(directory, "2"), second_port
            ) as connect_prometheus,
        ):
            found = ScrapedMirror(
                prometheus=prometheus,
                connect_prometheus=connect_prometheus,
                clusters=mirrored_clusters,
                topic=topic,
            )
            found.copy_records()
            yield found


def new_directory(directory: Path, name: str) -> Path:
    """A directory for one server."""
    (directory / name).mkdir()
    return directory / name


def scrape_job(name: str, address: str) -> dict[str, Any]:
    """A job of `deploy` for workers, with another address, every second and with TLS."""
    [job] = [
        job
        for job in load_yaml(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]
        if job["job_name"] == name
    ]
    job["static_configs"][0]["targets"] = [address]
    return {
        **job,
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
    }


VARIABLES = {
    "source": EAST,
    "target": WEST,
    "topic": ".*",
    "connector": ".*",
    "group": ".*",
    "__rate_interval": "1m",
    "kubernetes_namespace": "mirrors",
    "strimzi_mirror_maker_cluster_name": "mirrors",
    "strimzi_connect_cluster_name": "mirrors",
}


def localized(text: str) -> str:
    """A query with Grafana's variables replaced."""
    return re.sub(r"\$(\w+)", lambda found: VARIABLES[found[1]], text)


def reason(query: Query) -> str | None:
    """Why a query returns nothing; None if it should return something."""
    return WITHOUT_DATA.get(re.sub(r" \(\w\)$", "", query.place))


def test_every_query_of_every_dashboard_returns_data_or_its_reason_is_known(
    scraped: ScrapedMirror,
) -> None:
    wait_until(lambda: not scraped.missing(), f"data for {scraped.missing()}", SPARK_TIMEOUT_S / 4)
    queries = [*dashboard_queries(), *strimzi_queries()]
    known = {re.sub(r" \(\w\)$", "", query.place) for query in queries}
    assert WITHOUT_DATA.keys() <= known
    with_data = [query.place for query in queries if reason(query) and scraped.samples(query)]
    assert with_data == [], "the reason does not hold any more"


def test_every_rule_is_evaluated_on_metrics_that_are_there_and_no_alert_fires(
    scraped: ScrapedMirror,
) -> None:
    prometheus = scraped.prometheus

    def missing_metrics() -> set[str]:
        names = {
            selector.metric
            for query in rule_queries()
            for selector in read_names(query.text).selectors
        }
        wanted = (names | recorded_labels().keys()) - METRICS_WITHOUT_DATA.keys()
        return {name for name in wanted if not prometheus.query(name)}

    wait_until(lambda: not missing_metrics(), f"data for {missing_metrics()}", SPARK_TIMEOUT_S / 4)
    rules = [rule for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len([*rule_queries()])
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    alerts = prometheus.get("/api/v1/alerts")["alerts"]
    assert [one["labels"] for one in alerts if one["state"] == "firing"] == []


def test_every_metric_that_is_defined_is_scraped_with_all_its_names(
    scraped: ScrapedMirror,
) -> None:
    wanted = {
        metric.definition.name
        for definition in DEFINITIONS.values()
        for metric in exposed_metrics(definition, tuple(RuleSet))
    }
    assert "kafka_connect_mirror_MirrorSourceConnector_record_count" in wanted

    def missing() -> set[str]:
        found = set(scraped.prometheus.get("/api/v1/label/__name__/values"))
        return wanted - found - METRICS_WITHOUT_DATA.keys()

    wait_until(lambda: not missing(), f"the metrics {missing()}", SPARK_TIMEOUT_S / 4)


def test_record_age_and_replication_latency_are_those_of_what_was_copied(
    scraped: ScrapedMirror,
) -> None:
    """The timestamps of the records are at most two minutes old."""
    scraped.copy_records()

    def values() -> list[float]:
        prefix = "kafka_connect_mirror_mirrorsourceconnector_"
        names = ("record_age_ms_min", "replication_latency_ms_min", "replication_latency_ms_avg")
        found = [scraped.prometheus.query(f"max({prefix}{name})") for name in names]
        return [float(samples[0]["value"][1]) for samples in found if samples]

    def are_ages() -> bool:
        found = values()
        return len(found) == 3 and 0 <= found[0] <= found[1] <= found[2] < MAX_AGE_MS

    wait_until(are_ages, f"ages of records: {values()}", SPARK_TIMEOUT_S / 4)
