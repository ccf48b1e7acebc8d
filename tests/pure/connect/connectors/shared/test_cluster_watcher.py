"""What a connector says of clusters that it could not look at yet."""

from __future__ import annotations

import threading

from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ClusterUnavailable
from tests.support.connect.connector_context import RecordingContext
from tests.support.waiting import wait_until

CONFIG = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "one:9092",
    "target.cluster.bootstrap.servers": "two:9092",
}


def test_before_the_first_look_it_says_what_it_waits_for() -> None:
    may_look = threading.Event()

    def look() -> float:
        may_look.wait()
        raise ClusterUnavailable("B", "nobody is there")

    shared = MirrorSourceConfig.parse(CONFIG).shared
    lookout = ClusterWatcher("MirrorSourceConnector", shared, "refreshing topics", look)
    lookout.start(RecordingContext(cancelled=True))
    waiting = "A->B: waiting for first answers of A (one:9092) and B (two:9092)"
    assert str(lookout.last_error) == waiting
    may_look.set()
    wait_until(lambda: str(lookout.last_error) == "B: nobody is there", "the look to fail")
    assert not lookout.has_refreshed
    assert lookout.stop()
