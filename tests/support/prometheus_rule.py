"""The rules of deploy/prometheus for Kubernetes: an operator's object, and files of the chart.

`python -m tests.support.prometheus_rule` writes both; `make docs` calls that. Helm reads only files
inside a chart, and a link to a directory outside is lost in archives: the chart has copies.
"""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules"
MANIFEST = DEPLOY / "kubernetes" / "prometheus-operator" / "prometheusrule.yaml"
CHART_RULES = DEPLOY / "helm" / "sparkmirror" / "rules"
HEAD = """\
# The rules of deploy/prometheus/rules for the Prometheus operator. `make docs` writes this file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: sparkmirror
  labels:
    app.kubernetes.io/name: sparkmirror
spec:
  groups:
"""


def prometheus_rule() -> str:
    """Return the manifest with the groups of all files, in the order of their names."""
    texts = (file.read_text("utf-8") for file in sorted(RULES.glob("*.yml")))
    groups = (text.partition("groups:\n")[2].rstrip() + "\n" for text in texts)
    return HEAD + textwrap.indent("".join(groups), "  ")


if __name__ == "__main__":
    MANIFEST.write_text(prometheus_rule(), "utf-8")
    shutil.rmtree(CHART_RULES, ignore_errors=True)
    shutil.copytree(RULES, CHART_RULES)
