"""Errors of a cluster name the side of the flow that the cluster is."""

from __future__ import annotations

import pytest

from sparkmirror.copy.settings import CopySettings, cluster_side, with_side
from sparkmirror.errors import ClusterUnavailable, DriverLost, MirrorError

SETTINGS = CopySettings(source_alias="primary", target_alias="backup")


@pytest.mark.parametrize(
    ("error", "side", "text"),
    [
        (ClusterUnavailable("primary", "down"), "source", "source: primary: down"),
        (ClusterUnavailable("backup", "down"), "target", "target: backup: down"),
        (ClusterUnavailable("offsets", "down"), "", "offsets: down"),
        (DriverLost("dead"), "", "dead"),
    ],
)
def test_the_side_of_a_cluster_is_named(error: MirrorError, side: str, text: str) -> None:
    assert cluster_side(error, SETTINGS) == side
    assert with_side(error, SETTINGS) == text
