"""Prometheus' own tool checks the rules, the config and the metrics, and tries every alert."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from sparkmirror.metrics.definition import Figure, RuleSet
from sparkmirror.metrics.exposition import render
from sparkmirror.metrics.names.exposed_names import expose
from tests.support.metric_definitions import DEFINITIONS
from tests.support.prometheus.prometheus_program import needs_prometheus, require_program
from tests.support.prometheus.queries import DEPLOY, RULES, all_rules, load_yaml

pytestmark = needs_prometheus
ALERT_TESTS = Path(__file__).with_name("alert_tests.yml")


def promtool(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run promtool."""
    command = [require_program("promtool"), *arguments]
    return subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)


def assert_success(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_every_config_and_all_rules_are_valid() -> None:
    configs = [path for path in DEPLOY.rglob("prometheus.yml") if "grafana" not in path.parts]
    assert DEPLOY / "prometheus" / "prometheus.yml" in configs
    assert_success(promtool("check", "config", *map(str, configs)))
    assert_success(promtool("check", "rules", *map(str, RULES)))


def test_every_alert_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    cases = load_yaml(ALERT_TESTS)
    tried = {
        one["alertname"]
        for case in cases["tests"]
        for one in case["alert_rule_test"]
        if one.get("exp_alerts")
    }
    assert tried == {rule["alert"] for rule in all_rules() if "alert" in rule}
    file = tmp_path / "alert_tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(path) for path in RULES], **cases}))
    assert_success(promtool("test", "rules", str(file)))


def test_our_own_metrics_follow_the_naming_rules_and_all_can_be_read() -> None:
    """Names that Java has too break some rules: a gauge must not end in `_count`, say."""
    figures = [
        Figure(definition=one, value=1, labels=dict.fromkeys(one.labels, "x"))
        for one in DEFINITIONS.values()
    ]
    figures = list(expose(figures, tuple(RuleSet)))
    done = promtool("check", "metrics", given=render(figures).content)
    complaints = (done.stdout + done.stderr).decode().splitlines()
    assert [line for line in complaints if not line.startswith("kafka_")] == []
