"""The chart: its values, and that helm renders the objects of deploy/kubernetes from it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "sparkmirror"
KUBERNETES = ROOT / "deploy" / "kubernetes"
WITH_OPERATOR = (
    "--set=metrics.serviceMonitor.enabled=true",
    "--set=metrics.prometheusRule.enabled=true",
)
LABELS = {"app.kubernetes.io/name": "sparkmirror"}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def templates() -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in (CHART / "templates").iterdir()}


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The paths of all values, such as `image.tag`."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name != "resources":
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_versions_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    chart = load(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (project["version"],) * 2
    assert chart["name"] == project["name"]


def test_values_are_valid_by_the_schema_of_the_chart() -> None:
    schema = jsonschema_rs.validator_for(
        json.loads((CHART / "values.schema.json").read_text("utf-8"))
    )
    values = load(CHART / "values.yaml")
    assert [str(error) for error in schema.iter_errors(values)] == []
    for wrong in ({"replica": 3}, {"replicas": "two"}, {"config": ""}):
        assert not schema.is_valid({**values, **wrong})


def test_templates_use_every_value_and_no_other() -> None:
    values = load(CHART / "values.yaml")
    text = "\n".join(templates().values())
    used = set(re.findall(r"\.Values\.([\w.]+)", text))
    known = set(leaves(values))
    parents = {path.rpartition(".")[0] for path in known}
    assert used <= known | parents, "a template uses a value that values.yaml has not"
    for path in known:
        parent, _, name = path.rpartition(".")
        inside_with = parent in used and re.search(rf"(?<![\w.])\.{name}\b", text)
        assert path in used or inside_with, f"{path} has no effect"


def test_braces_and_blocks_of_templates_are_closed() -> None:
    for name, text in templates().items():
        assert text.count("{{") == text.count("}}"), name
        opened = re.findall(r"{{-? *(if|with|range|define|else|end)\b", text)
        begun = [word for word in opened if word not in ("end", "else")]
        assert len(begun) == opened.count("end"), name


def test_defaults_are_those_of_the_manifests() -> None:
    values = load(CHART / "values.yaml")
    deployment = load(KUBERNETES / "deployment.yaml")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert values["config"] == load(KUBERNETES / "configmap.yaml")["data"]["mm2.properties"]
    assert values["secretName"] == load(KUBERNETES / "secret.yaml")["metadata"]["name"]
    assert values["replicas"] == deployment["replicas"]
    assert values["resources"] == container["resources"]
    assert container["image"].startswith(f"{values['image']['repository']}:")


def test_chart_has_the_alert_rules() -> None:
    rules = {path.name: path.read_bytes() for path in (CHART / "rules").glob("*.yml")}
    ours = (ROOT / "deploy" / "prometheus" / "rules").glob("*.yml")
    assert rules == {path.name: path.read_bytes() for path in ours}, "run make docs"
    assert 'Files.Glob "rules/*.yml"' in templates()["prometheusrule.yaml"]


HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="there is no helm on this computer")


def run_helm(*arguments: str | Path) -> str:
    ran = subprocess.run([str(HELM), *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def rendered(*options: str, release: str = "sparkmirror") -> dict[str, Any]:
    """The objects that helm makes of the chart, by kind."""
    text = run_helm("template", release, CHART, *options)
    return {one["kind"]: one for one in yaml.safe_load_all(text) if one}


def without_marks_of_helm(value: Any) -> Any:
    """An object without the labels and annotations that only the chart has."""
    if isinstance(value, list):
        return [without_marks_of_helm(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: without_marks_of_helm(one)
        for key, one in value.items()
        if key != "imagePullPolicy" and not key.startswith(("helm.sh/", "checksum/"))
    }
    if kept.get("annotations") == {}:
        del kept["annotations"]
    for mark in ("instance", "version", "managed-by"):
        kept.pop(f"app.kubernetes.io/{mark}", None)
    return kept


@needs_helm
def test_helm_lint_has_no_fault() -> None:
    run_helm("lint", "--strict", CHART)


@needs_helm
def test_helm_renders_the_objects_of_the_manifests() -> None:
    objects = {kind: without_marks_of_helm(one) for kind, one in rendered(*WITH_OPERATOR).items()}
    files = [*KUBERNETES.glob("*.yaml"), *KUBERNETES.glob("prometheus-operator/*.yaml")]
    manifests = {one["kind"]: one for one in map(load, files) if one["kind"] != "Secret"}
    assert objects == manifests


@needs_helm
def test_values_reach_the_objects(tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text("clusters = a, b\n# {{ a brace }}\na->b.enabled = true\n", "ascii")
    options = (
        f"--set-file=config={config}",
        "--set=image.repository=registry.example/sparkmirror,image.tag=1.2.3,secretName=",
        "--set=replicas=3,podDisruptionBudget.enabled=false,serviceAccountName=mirror",
        "--set=env[0].name=SPARKMIRROR_LOG_FORMAT,env[0].value=json,podLabels.team=data",
    )
    objects = rendered(*options, release="west")
    assert set(objects) == {"ConfigMap", "Deployment", "Service"}
    assert objects["ConfigMap"]["data"]["mm2.properties"] == config.read_text("ascii")
    deployment = objects["Deployment"]
    assert deployment["metadata"]["name"] == "west-sparkmirror"
    assert deployment["spec"]["replicas"] == 3
    pod = deployment["spec"]["template"]
    labels = {**LABELS, "app.kubernetes.io/instance": "west"}
    assert objects["Service"]["spec"]["selector"] == labels
    assert pod["metadata"]["labels"] == {**labels, "team": "data"}
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "registry.example/sparkmirror:1.2.3"
    assert container["env"][1] == {"name": "SPARKMIRROR_LOG_FORMAT", "value": "json"}
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["config", "home", "tmp"]
    assert pod["spec"]["serviceAccountName"] == "mirror"
    assert pod["spec"]["automountServiceAccountToken"] is True


@needs_helm
def test_wrong_value_is_refused() -> None:
    ran = subprocess.run(
        [str(HELM), "template", "x", CHART, "--set=replica=3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "replica" in ran.stderr
