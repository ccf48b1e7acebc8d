"""The queries of the rules and dashboards of `deploy`, and of Strimzi's dashboards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.golden import golden_lines
from tests.support.prometheus.promql import read_names

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and the labels that its texts show."""

    place: str
    text: str
    shown: frozenset[str] = frozenset()


def load_yaml(path: Path) -> Any:
    load: Callable[[str], Any] = yaml.safe_load
    return load(path.read_text("utf-8"))


@cache
def all_rules() -> list[dict[str, Any]]:
    return [
        rule for path in RULES for group in load_yaml(path)["groups"] for rule in group["rules"]
    ]


@cache
def recorded_labels() -> dict[str, set[str]]:
    """The labels of the series that recording rules make: those that the rule keeps."""
    return {
        rule["record"]: set(read_names(rule["expr"]).grouping)
        for rule in all_rules()
        if "record" in rule
    }


def rule_queries() -> Iterator[Query]:
    for rule in all_rules():
        texts = " ".join(rule.get("annotations", {}).values())
        shown = frozenset(re.findall(r"\$labels\.(\w+)", texts))
        yield Query(rule.get("record") or rule["alert"], rule["expr"], shown)


def dashboard_queries() -> Iterator[Query]:
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text("utf-8"))
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                shown = frozenset(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                place = f"{path.name}: {panel['title']} ({target['refId']})"
                yield Query(place, target["expr"], shown)
        for variable in dashboard["templating"]["list"]:
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable.get("definition", ""))
            if found is not None:
                place = f"{path.name}: ${variable['name']}"
                yield Query(place, f"count by ({found[2]}) ({found[1]})")


def strimzi_queries() -> Iterator[Query]:
    """Those of Strimzi's dashboards for MirrorMaker 2 and Connect, with the JMX exporter."""
    for line in golden_lines("metrics/strimzi-queries.jsonl"):
        yield Query(f"{line['dashboard']}: {line['panel']}", line["query"])
