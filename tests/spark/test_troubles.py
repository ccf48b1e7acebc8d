"""Every trouble of the table, provoked on real clusters: every surface tells it, and then its end.

One worker and one source connector serve most rows. A second worker serves the rows of a Spark
cluster, one after the other. The log (`--log-cli-level=INFO`) has the seconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.spark.troubles.comparison import (
    differences,
    flooding_lines,
    lies,
    remainders,
    traces,
)
from tests.spark.troubles.provocations import PROVOCATIONS
from tests.spark.troubles.spark_cluster_worker import COMPACTED, running_spark_cluster_worker
from tests.spark.troubles.surfaces import Beginning, Subject, Surfaces, beginning, read_surfaces
from tests.spark.troubles.trouble import Trouble
from tests.spark.troubles.trouble_table import TROUBLES
from tests.spark.troubles.troubled_mirror import (
    MAIN,
    TOPIC_PREFIX,
    TroubledMirror,
    cluster_spec,
    running_mirror,
)

log = logging.getLogger(__name__)

FACTOR, MORE_S = 4, 10
"""A busy computer may take so many times as long as the table says, and so many seconds more."""
LOOK_INTERVAL_S = 0.2
SOURCE_BROKERS = 2
BY_NAME = {trouble.name: trouble for trouble in TROUBLES}
ROWS = [BY_NAME[name] for name in PROVOCATIONS]
TWO_PARTITIONS = "one-broker-down"
SHUTDOWN_FAILED = "failed to properly shut down"


@pytest.fixture(scope="module")
def mirror(
    reaper: ProcessReaper, lab_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TroubledMirror]:
    """A worker that copies a topic per row. Every connector that a row deletes must end in time."""
    specs = [cluster_spec("troubles-source", SOURCE_BROKERS), cluster_spec("troubles-target")]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    directory = tmp_path_factory.mktemp("troubles")
    topics = {f"{TOPIC_PREFIX}{row.name}": 2 if row.name == TWO_PARTITIONS else 1 for row in ROWS}
    with running_mirror(source, target, directory, topics) as started:
        yield started
        assert SHUTDOWN_FAILED not in started.program.output
    for cluster in (source, target):
        cluster.remove()


@pytest.mark.parametrize("trouble", ROWS, ids=lambda trouble: trouble.name)
def test_every_surface_tells_a_trouble(mirror: TroubledMirror, trouble: Trouble) -> None:
    topic = f"{TOPIC_PREFIX}{trouble.name}"
    since = beginning(mirror.program, Subject(connector=MAIN, topic=topic))
    with ExitStack() as stack:
        with PROVOCATIONS[trouble.name](mirror, topic) as subject:
            stack.callback(subject.tidy)
            program = subject.program or mirror.program
            began = Beginning() if subject.program else since

            def look() -> Surfaces:
                return read_surfaces(program, subject, began)

            appeared_s = wait_until_appeared(trouble, look)
            assert not flooding_lines(look().log)
        disappeared_s = wait_until_none(lambda: remainders(look()), trouble.disappears_within_s)
        log_seconds(trouble, appeared_s, disappeared_s)


def test_every_surface_tells_a_trouble_of_a_spark_cluster(
    mirror: TroubledMirror, reaper: ProcessReaper, tmp_path: Path
) -> None:
    """The config topic has lost a task config, the clock is wrong, receipts cannot be written.

    There is no Spark master at first, then one without a worker, then one with a worker.
    """
    with running_spark_cluster_worker(mirror, tmp_path) as other:

        def look() -> Surfaces:
            return read_surfaces(other.program, subject, Beginning())

        def appears(name: str) -> float:
            return wait_until_appeared(BY_NAME[name], look)

        def disappears(name: str) -> float:
            row = BY_NAME[name]
            return wait_until_none(lambda: traces(row, look()), row.disappears_within_s)

        subject = Subject(connector=COMPACTED)
        log_seconds(BY_NAME["config-topic-compacted"], appears("config-topic-compacted"), 0)

        subject = other.start_source_connector()
        gone_s = appears("spark-master-gone")
        with other.running_spark_master(reaper) as spark:
            log_seconds(BY_NAME["spark-master-gone"], gone_s, disappears("spark-master-gone"))
            none_s = appears("no-slot")
            spark.add_worker(cores=2)
            log_seconds(BY_NAME["no-slot"], none_s, disappears("no-slot"))
            full_s = appears("receipts-not-writable")
            other.make_receipts_writable()
            row = BY_NAME["receipts-not-writable"]
            healed_s = wait_until_none(lambda: remainders(look()), row.disappears_within_s)
            log_seconds(row, full_s, healed_s)

            assert other.has_wrong_clock()
            appears("clock-wrong")
            other.stop_while_a_connector_is_in_trouble()
            assert SHUTDOWN_FAILED not in other.program.output


def wait_until_appeared(trouble: Trouble, look: Callable[[], Surfaces]) -> float:
    """Wait until every surface says what the table says; return how many seconds that took.

    If the trouble lasts, no surface may claim for a while that all is well.
    """
    seconds = wait_until_none(lambda: differences(trouble, look()), trouble.appears_within_s)
    if trouble.lasts:
        wait_while_none(lambda: lies(trouble, look()), trouble.watched_s)
    return seconds


def wait_until_none(find: Callable[[], list[str]], within_s: float) -> float:
    """Wait until nothing is found; return how many seconds that took."""
    began = time.monotonic()
    while True:
        looked_s = time.monotonic() - began
        found = find()
        if not found:
            return looked_s
        assert looked_s < FACTOR * within_s + MORE_S, f"after {looked_s:.0f} s: " + "\n".join(found)
        time.sleep(LOOK_INTERVAL_S)


def wait_while_none(find: Callable[[], list[str]], duration_s: float) -> None:
    """Find nothing for so long."""
    began = time.monotonic()
    while time.monotonic() - began < duration_s:
        found = find()
        assert not found, "\n".join(found)
        time.sleep(LOOK_INTERVAL_S)


def log_seconds(trouble: Trouble, appeared_s: float, disappeared_s: float) -> None:
    log.info(
        "%s: appeared after %.1f s (%d), disappeared after %.1f s (%d)",
        trouble.name,
        appeared_s,
        trouble.appears_within_s,
        disappeared_s,
        trouble.disappears_within_s,
    )
