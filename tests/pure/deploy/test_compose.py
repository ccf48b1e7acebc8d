"""The compose files: services, ports, mounts and commands that tutorials use."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from sparkmirror.cli.config.start_validation import (
    require_valid_dedicated_file,
    require_valid_worker_file,
)
from sparkmirror.cli.container.entrypoint import container_start
from sparkmirror.cli.kafka_opts import java_notes, metrics_listener
from sparkmirror.config.files.properties import load_properties, parse_properties
from tests.support.cli.tutorial_files import QUICKSTART_WORKER_FILE

SCHEMA = Path(__file__).parent / "schemas" / "compose-spec.json"
COMPOSE = Path(__file__).parents[3] / "deploy" / "compose"
TUTORIAL_001 = Path(__file__).parents[2] / "tutorials" / "001"
TUTORIALS = ("000", "001", "004")
IMAGE = "sparkmirror:0.1.0"


def compose_file(tutorial: str) -> dict[str, Any]:
    loaded = yaml.safe_load((COMPOSE / tutorial / "docker-compose.yml").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_file_is_valid_by_the_schema_of_the_compose_specification(tutorial: str) -> None:
    schema = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text("utf-8")))
    file = compose_file(tutorial)
    assert [str(error) for error in schema.iter_errors(file)] == []
    next(iter(file["services"].values()))["no_such_key"] = "x"
    assert not schema.is_valid(file), "the schema knows which keys there are"


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_what_a_service_names_is_in_the_file_or_beside_it(tutorial: str) -> None:
    file = compose_file(tutorial)
    for service in file["services"].values():
        assert set(service.get("depends_on", ())) <= set(file["services"])
        assert set(service.get("networks", ())) <= set(file.get("networks", ()))
        for volume in service.get("volumes", ()):
            source = volume["source"] if isinstance(volume, dict) else volume.partition(":")[0]
            if source.startswith("."):
                assert (COMPOSE / tutorial / source).exists(), source
            else:
                assert source in file["volumes"]


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_no_image_is_one_that_is_gone(tutorial: str) -> None:
    images = [service["image"] for service in compose_file(tutorial)["services"].values()]
    assert [name for name in images if "bitnami" in name or "provectus" in name] == []


@pytest.mark.parametrize("tutorial", ["000", "001"])
def test_image_is_built_from_the_dockerfile(tutorial: str) -> None:
    services = compose_file(tutorial)["services"].values()
    builds = [service["build"] for service in services if service["image"] == IMAGE]
    assert builds
    for build in builds:
        context = COMPOSE / tutorial / build["context"]
        assert (context / build["dockerfile"]).is_file()
        assert (context / "pyproject.toml").is_file()


def test_000_has_the_names_and_ports_of_the_tutorial() -> None:
    file = compose_file("000")
    assert file["networks"]["kafka_network"]["name"] == "kafka-network"
    services = file["services"]
    assert set(services) == {"broker", "broker2", "connect"}
    for name, service in services.items():
        assert service["container_name"] == service["hostname"] == name
    assert services["broker"]["ports"] == ["9092:9092"]
    assert services["broker2"]["ports"] == ["9093:9092"]
    assert services["connect"]["ports"][0] == "28082:28082"
    assert "PLAINTEXT://broker:29092" in services["broker"]["environment"]["KAFKA_LISTENERS"]
    assert "PLAINTEXT://broker2:29093" in services["broker2"]["environment"]["KAFKA_LISTENERS"]


def test_000_worker_has_the_file_that_the_tutorial_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = compose_file("000")["services"]["connect"]
    environment = dict(text.split("=", 1) for text in service["environment"])
    start = container_start((), environment, tmp_path)
    assert start.command[-1] == "/etc/kafka-connect/kafka-connect.properties"
    assert start.worker_properties is not None
    lines = start.worker_properties.splitlines()
    assert len(lines) == 14
    assert set(lines) == set(QUICKSTART_WORKER_FILE.splitlines())
    file = parse_properties(start.worker_properties.encode("ascii"), file=start.command[-1])
    require_valid_worker_file(file, environment)
    assert capsys.readouterr().err == ""


def test_000_connector_names_the_listeners_of_the_brokers() -> None:
    connector = json.loads((COMPOSE / "000" / "connectors.json").read_text("utf-8"))
    assert connector["name"] == connector["config"]["name"] == "test_mirror"
    assert connector["config"]["source.cluster.bootstrap.servers"] == "broker:29092"
    assert connector["config"]["producer.override.bootstrap.servers"] == "broker2:29093"


def test_001_workers_run_the_mounted_file_with_kafkas_script() -> None:
    services = compose_file("001")["services"]
    for name in ("kafka-connect-0", "kafka-connect-1"):
        service = services[name]
        assert service["image"] == IMAGE
        assert service["hostname"] == name
        command, path = service["command"].split()
        assert command == "/opt/bitnami/kafka/bin/connect-distributed.sh"
        (volume,) = service["volumes"]
        assert volume == f"./kafka-connect/connect-distributed.properties:{path}"
        start = container_start(service["command"].split(), service["environment"], COMPOSE)
        assert start.command == (command, path)
        assert java_notes(service["environment"])[0].startswith("KAFKA_HEAP_OPTS has no effect")
        assert metrics_listener(service["environment"]) == "http://0.0.0.0:9404"
    assert services["kafka-connect-0"]["ports"] == ["8083:8083"]


def test_001_worker_file_may_start(capsys: pytest.CaptureFixture[str]) -> None:
    file = load_properties(COMPOSE / "001" / "kafka-connect" / "connect-distributed.properties")
    require_valid_worker_file(file, {})
    assert capsys.readouterr().err == ""
    assert len(file.mapping) == 18, "the file of the tutorial, with nothing added"


def test_001_other_files_name_the_workers() -> None:
    ui = yaml.safe_load((COMPOSE / "001" / "kafka-ui" / "config.yml").read_text("utf-8"))
    target = ui["kafka"]["clusters"][1]
    assert [connect["address"] for connect in target["kafkaConnect"]] == [
        "http://kafka-connect-0:8083",
        "http://kafka-connect-1:8083",
    ]


def test_001_prometheus_scrapes_the_workers_and_one_exporter_for_each_cluster() -> None:
    prometheus = yaml.safe_load((COMPOSE / "001/prometheus/prometheus.yml").read_text("utf-8"))
    jobs = {job["job_name"]: job for job in prometheus["scrape_configs"]}
    (scraped,) = jobs["kafka-connect-exporter"]["static_configs"]
    assert scraped["targets"] == ["kafka-connect-0:9404", "kafka-connect-1:9404"]
    services = compose_file("001")["services"]
    tutorial = yaml.safe_load((TUTORIAL_001 / "prometheus/prometheus.yml").read_text("utf-8"))
    named = [job["job_name"] for job in tutorial]
    assert named == ["kafka-source-exporter", "kafka-target-exporter"]
    for name in named:
        (exporter,) = jobs[name]["static_configs"]
        (target,) = exporter["targets"]
        host, port = target.split(":")
        cluster = exporter["labels"]["cluster"]
        assert name == f"kafka-{cluster}-exporter"
        assert services[host]["ports"][0].endswith(f":{port}")
        servers = re.findall(r"--kafka\.server=(\S+)", services[host]["command"])
        assert servers == [f"kafka-{cluster}-0:9092", f"kafka-{cluster}-1:9092"]


def test_001_prometheus_has_the_alert_rules_and_grafana_the_dashboards() -> None:
    services = compose_file("001")["services"]
    mounts = {
        target: (COMPOSE / "001" / source).resolve().relative_to(COMPOSE.parent).as_posix()
        for name in ("prometheus", "grafana")
        for source, target, *_ in (volume.split(":") for volume in services[name]["volumes"])
        if source.startswith(".")
    }
    assert mounts == {
        "/etc/prometheus/prometheus.yml": "compose/001/prometheus/prometheus.yml",
        "/etc/prometheus/rules": "prometheus/rules",
        "/etc/grafana/provisioning": "grafana/provisioning",
        "/var/lib/grafana/dashboards": "grafana/dashboards",
    }
    prometheus = yaml.safe_load((COMPOSE / "001/prometheus/prometheus.yml").read_text("utf-8"))
    assert prometheus["rule_files"] == ["rules/*.yml"]
    assert services["grafana"]["ports"] == ["3000:3000"]


@pytest.mark.parametrize("part", ["cpc", "hbc", "msc"])
def test_001_connector_has_the_name_of_its_file(part: str) -> None:
    name = f"mm2-{part}-source-0"
    connector = json.loads((COMPOSE / "001" / "mm2" / f"{name}.json").read_text("utf-8"))
    assert connector["name"] == name
    assert connector["source.cluster.alias"] == "source-0"


def test_004_container_runs_the_mounted_flows() -> None:
    service = compose_file("004")["services"]["mm2-replicator"]
    targets = {volume["target"]: volume["source"] for volume in service["volumes"]}
    assert targets == {"/app/replicator/config/": "./config", "/properties/": "./properties"}
    start = container_start((), {}, COMPOSE / "004")
    assert start.command == ("connect-mirror-maker.sh", "./config/mm2-config.properties")
    dockerfile = (COMPOSE / "004" / "Dockerfile").read_text("utf-8")
    assert dockerfile.splitlines()[-1] == f"FROM {IMAGE}"
    assert os.access(COMPOSE / "004" / "docker-run.sh", os.X_OK)


def test_004_flows_may_start_with_a_filled_in_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = COMPOSE / "004" / "properties" / "template_access.properties"
    access = tmp_path / "access.properties"
    filled = template.read_text("ascii").replace("_API_SECRET=\n", "_API_SECRET=s3cret\n")
    access.write_text(filled.replace("SRC_API_KEY=\n", "SRC_API_KEY=key\n"), "ascii")
    text = (COMPOSE / "004" / "config" / "mm2-config.properties").read_bytes()
    text = text.replace(b"/properties/access.properties", bytes(access))
    require_valid_dedicated_file(parse_properties(text, file="mm2-config.properties"), (), {})
    assert capsys.readouterr().err == ""
