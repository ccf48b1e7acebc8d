"""The manifests: names that belong together, mounts of every path, probes, and no rights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate.utils import ValidationError, validate

from sparkmirror.cli.config.start_validation import require_valid_dedicated_file
from sparkmirror.config.files.properties import load_properties, parse_properties
from tests.support.prometheus_rule import MANIFEST, prometheus_rule

DEPLOY = Path(__file__).parents[3] / "deploy"
IMAGE = "sparkmirror:0.1.0"
KUBERNETES_VERSIONS = ("1.30", "1.36")
OPERATOR_KINDS = {"ServiceMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator, which the schemas of Kubernetes do not have."""
KINDS = {"ConfigMap", "Secret", "Deployment", "Service", "PodDisruptionBudget", *OPERATOR_KINDS}


def manifest(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def by_kind() -> dict[str, dict[str, Any]]:
    directory = DEPLOY / "kubernetes"
    files = sorted([*directory.glob("*.yaml"), *directory.glob("prometheus-operator/*.yaml")])
    found = [manifest(path) for path in files]
    assert len(found) == len(KINDS)
    return {one["kind"]: one for one in found}


def all_objects() -> list[Any]:
    """Every object of every file, but not those of the Prometheus operator."""
    files = sorted([*DEPLOY.glob("kubernetes/**/*.yaml"), *DEPLOY.glob("openshift/*.yaml")])
    return [
        pytest.param(one, id=f"{path.stem}-{one['kind']}")
        for path in files
        for one in yaml.safe_load_all(path.read_text("utf-8"))
        if one["kind"] not in OPERATOR_KINDS
    ]


def openshift_pod() -> dict[str, Any]:
    return manifest(DEPLOY / "openshift" / "mm2-pod.yaml")


def pod_specs() -> list[Any]:
    deployment = by_kind()["Deployment"]["spec"]["template"]["spec"]
    return [
        pytest.param(deployment, id="kubernetes"),
        pytest.param(openshift_pod()["spec"], id="openshift"),
    ]


def mount_paths(spec: dict[str, Any]) -> dict[str, str]:
    """Where each volume of the pod is mounted."""
    (container,) = spec["containers"]
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def named_paths(properties: dict[str, str]) -> set[str]:
    """The absolute paths in the values of a file."""
    found = re.findall(r"(?:^|\$\{\w+:)(/[\w./-]+)", "\n".join(properties.values()), re.MULTILINE)
    return set(found)


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("one", all_objects())
def test_object_is_valid_by_the_schema_of_kubernetes(one: dict[str, Any], version: str) -> None:
    validate(one, version, strict=True)
    with pytest.raises(ValidationError):
        validate({**one, "no_such_field": 1}, version, strict=True)


def test_objects_of_the_prometheus_operator_are_those_of_the_other_files() -> None:
    """`kubectl apply -f deploy/kubernetes` works without that operator: they are apart."""
    assert MANIFEST.read_text("utf-8") == prometheus_rule(), "run make docs"
    groups = manifest(MANIFEST)["spec"]["groups"]
    files = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
    assert groups == [group for file in files for group in manifest(file)["groups"]]
    assert not OPERATOR_KINDS & {
        manifest(path)["kind"] for path in (DEPLOY / "kubernetes").glob("*.yaml")
    }


def test_executors_have_what_the_settings_name() -> None:
    directory = DEPLOY / "kubernetes" / "executors"
    settings = load_properties(directory / "spark.properties").mapping
    template = manifest(directory / "executor-pod.yaml")
    (container,) = template["spec"]["containers"]
    assert container["name"] == settings["spark.kubernetes.executor.podTemplateContainerName"]
    assert Path(settings["spark.kubernetes.executor.podTemplateFile"]).name == "executor-pod.yaml"
    deployment = by_kind()["Deployment"]["spec"]["template"]["spec"]
    mounts = mount_paths(deployment)
    assert settings["spark.kubernetes.executor.podTemplateFile"].startswith(mounts["config"])
    assert mount_paths(template["spec"]) == {"access": mounts["access"]}
    secrets = {volume["name"]: volume for volume in deployment["volumes"]}
    assert template["spec"]["volumes"] == [secrets["access"]]
    account, role, binding = yaml.safe_load_all((directory / "rbac.yaml").read_text("utf-8"))
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"][0]["name"] == account["metadata"]["name"]


@pytest.mark.parametrize("spec", pod_specs())
def test_pod_has_no_rights_and_every_volume_it_mounts(spec: dict[str, Any]) -> None:
    (container,) = spec["containers"]
    assert container["image"] == IMAGE
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["enableServiceLinks"] is False
    assert spec["terminationGracePeriodSeconds"] >= 60
    assert set(mount_paths(spec)) == {volume["name"] for volume in spec["volumes"]}
    writable = {"/tmp", "/home/sparkmirror"}  # noqa: S108 - a path in the container
    assert writable <= set(mount_paths(spec).values())


def test_manifests_share_name_and_labels() -> None:
    kinds = by_kind()
    assert set(kinds) == KINDS
    labels = {"app.kubernetes.io/name": "sparkmirror"}
    for kind, one in kinds.items():
        assert one["metadata"] == {"name": "sparkmirror", "labels": labels}, kind
    assert kinds["Deployment"]["spec"]["template"]["metadata"]["labels"] == labels
    assert kinds["Service"]["spec"]["selector"] == labels
    for kind in ("Deployment", "PodDisruptionBudget", "ServiceMonitor"):
        assert kinds[kind]["spec"]["selector"]["matchLabels"] == labels, kind


def test_ports_are_those_of_the_file() -> None:
    kinds = by_kind()
    (container,) = kinds["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    text = kinds["ConfigMap"]["data"]["mm2.properties"].encode("ascii")
    properties = parse_properties(text, file="mm2.properties").mapping
    assert properties["listeners"] == f"http://0.0.0.0:{ports['rest']}"
    assert properties["sparkmirror.metrics.listener"] == f"http://0.0.0.0:{ports['metrics']}"
    assert {port["targetPort"] for port in kinds["Service"]["spec"]["ports"]} == set(ports)
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "rest"}
    assert container["livenessProbe"]["tcpSocket"] == {"port": "rest"}
    (endpoint,) = kinds["ServiceMonitor"]["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in kinds["Service"]["spec"]["ports"]}


def test_monitor_adds_the_labels_that_strimzis_dashboard_asks_for() -> None:
    """The operator adds `namespace` itself."""
    (endpoint,) = by_kind()["ServiceMonitor"]["spec"]["endpoints"]
    labels = {rule["targetLabel"]: rule for rule in endpoint["relabelings"]}
    assert labels.keys() == {"strimzi_io_kind", "strimzi_io_cluster", "kubernetes_pod_name"}
    assert labels["strimzi_io_kind"]["replacement"] == "KafkaMirrorMaker2"
    source = labels["kubernetes_pod_name"]["sourceLabels"]
    assert source == ["__meta_kubernetes_pod_name"]
    template = DEPLOY / "helm" / "sparkmirror" / "templates" / "servicemonitor.yaml"
    for label in labels:
        assert f"targetLabel: {label}\n" in template.read_text("utf-8")


def test_deployment_runs_a_file_of_the_config_map_that_may_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = by_kind()
    spec = kinds["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = mount_paths(spec)
    script, path = container["args"]
    name = path.removeprefix(f"{mounts['config']}/")
    text = kinds["ConfigMap"]["data"][name]
    (secret_name,) = kinds["Secret"]["stringData"]
    secret_path = f"{mounts['access']}/{secret_name}"
    assert script == "connect-mirror-maker.sh"
    assert secret_path in text
    secret = tmp_path / secret_name
    secret.write_text(kinds["Secret"]["stringData"][secret_name], "ascii")
    file = parse_properties(text.replace(secret_path, str(secret)).encode(), file=path)
    environment = {variable["name"]: "10.0.0.5" for variable in container["env"]}
    require_valid_dedicated_file(file, (), environment)
    assert capsys.readouterr().err == ""


def test_openshift_pod_has_the_names_of_the_tutorial() -> None:
    spec = openshift_pod()["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["mm2properties"]["configMap"]["name"] == "mm2properties"
    assert volumes["es-apikey-target"]["secret"]["secretName"] == "es-apikey-target"
    (container,) = spec["containers"]
    file = f"{mount_paths(spec)['mm2properties']}/kafka-to-es-mm2.properties"
    assert container["args"] == ["/opt/kafka/bin/connect-mirror-maker.sh", file]
    assert container["readinessProbe"]["exec"]["command"][-1] == file


def test_every_path_of_the_openshift_file_is_mounted() -> None:
    properties = load_properties(DEPLOY / "openshift" / "kafka-to-es-mm2.properties").mapping
    mounted = tuple(mount_paths(openshift_pod()["spec"]).values())
    paths = named_paths(properties)
    assert paths == {"/etc/my-cluster-cluster-ca-cert/ca.crt", "/etc/es-apikey-target"}
    assert [path for path in sorted(paths) if not path.startswith(mounted)] == []
    assert "${dir:/etc/es-apikey-target:binding}" in properties["target.sasl.jaas.config"]
