"""Every trouble of the table, provoked on real clusters: every surface tells it, and then its end.

One worker serves most rows, and those of a group (`troubles/trouble_groups.py`) at the same time. A
second worker serves the rows of a Spark cluster, one after the other. The log
(`--log-cli-level=INFO`) has the seconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.spark.troubles.comparison import (
    connector_remainders,
    differences,
    flooding_lines,
    lies,
    remainders,
    traces,
)
from tests.spark.troubles.provocations import PROVOCATIONS
from tests.spark.troubles.spark_cluster_worker import COMPACTED, running_spark_cluster_worker
from tests.spark.troubles.surfaces import (
    Beginning,
    Looks,
    Subject,
    Surfaces,
    beginning,
    read_surfaces,
)
from tests.spark.troubles.trouble import Trouble
from tests.spark.troubles.trouble_groups import OWN_CONNECTORS, SOAK_GROUPS, TROUBLE_GROUPS
from tests.spark.troubles.trouble_table import TROUBLES
from tests.spark.troubles.troubled_mirror import (
    OWN_PREFIX,
    TOPIC_PREFIX,
    TroubledMirror,
    cluster_spec,
    running_mirror,
    subject_of,
)

log = logging.getLogger(__name__)

FACTOR, MORE_S = 4, 10
"""A busy computer may take so many times as long as the table says, and so many seconds more."""
LOOK_INTERVAL_S = 0.3
"""While something shows only for a while, or must not show at all."""
LASTING_INTERVAL_S = 0.6
"""While something shows that stays."""
SOURCE_BROKERS = 2
BY_NAME = {trouble.name: trouble for trouble in TROUBLES}
GROUPS = [
    pytest.param(group, marks=[pytest.mark.soak] if group in SOAK_GROUPS else [])
    for group in TROUBLE_GROUPS
]
TWO_PARTITIONS = "one-broker-down"
SHUTDOWN_FAILED = "failed to properly shut down"


def topic_of(name: str) -> str:
    """Return the topic of a row."""
    return f"{OWN_PREFIX if name in OWN_CONNECTORS else TOPIC_PREFIX}{name}"


@pytest.fixture(scope="module")
def mirror(
    reaper: ProcessReaper, lab_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TroubledMirror]:
    """A worker that copies a topic per row. Every connector that a row deletes must end in time."""
    specs = [cluster_spec("troubles-source", SOURCE_BROKERS), cluster_spec("troubles-target")]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    directory = tmp_path_factory.mktemp("troubles")
    topics = {
        topic_of(name): 2 if name == TWO_PARTITIONS else 1
        for name in PROVOCATIONS
        if name not in OWN_CONNECTORS
    }
    with running_mirror(source, target, directory, topics) as started:
        yield started
        assert SHUTDOWN_FAILED not in started.program.output
    for cluster in (source, target):
        cluster.remove()


@pytest.mark.parametrize("group", GROUPS)
def test_every_surface_tells_a_trouble(mirror: TroubledMirror, group: str) -> None:
    """All rows of the group are provoked, then looked for; then all are ended."""
    names = TROUBLE_GROUPS[group]
    own = {name: config for name, config in OWN_CONNECTORS.items() if name in names}
    with ExitStack() as stack:
        for name in own:
            stack.callback(mirror.delete, name)
        mirror.start_source_connectors(own)
        rows = [RowOfGroup(BY_NAME[name], mirror, topic_of(name)) for name in names]
        with ExitStack() as provoked:
            for row in rows:
                row.provoke(provoked)
                stack.callback(row.subject.tidy)
            appeared_s = [row.wait_until_appeared(rows) for row in rows]
            lasting = [row for row in rows if row.trouble.lasts]
            watched_s = max((row.trouble.watched_s for row in lasting), default=0)
            wait_while_none(lambda: lies_of(lasting), watched_s)
            looks = Looks()
            for row in rows:
                assert not flooding_lines(row.look(looks).log)
        for row, seconds in zip(rows, appeared_s, strict=True):
            log_seconds(row.trouble, seconds, row.wait_until_disappeared())
        longest_s = max(row.trouble.disappears_within_s for row in rows)
        wait_until_none(lambda: remainders_of(rows), longest_s)


class RowOfGroup:
    """A row of the table that is provoked together with others."""

    def __init__(self, trouble: Trouble, mirror: TroubledMirror, topic: str) -> None:
        self.trouble = trouble
        self._mirror = mirror
        self._topic = topic
        self._since = beginning(mirror.program, subject_of(topic))

    def provoke(self, provoked: ExitStack) -> None:
        """Provoke the trouble until the stack is closed."""
        provocation = PROVOCATIONS[self.trouble.name]
        self.subject = provoked.enter_context(provocation(self._mirror, self._topic))

    def look(self, looks: Looks | None = None) -> Surfaces:
        """Look at every surface; with `looks` other rows have a part in the same look."""
        own = self.subject.program
        shared = (looks or Looks()).at(own or self._mirror.program)
        return shared.surfaces(self.subject, Beginning() if own else self._since)

    def wait_until_appeared(self, rows: Sequence[RowOfGroup]) -> float:
        """Wait for it beside the other rows of the group."""
        of_program = [row for row in rows if row.subject.program is self.subject.program]
        others = [row.trouble for row in of_program if row is not self]
        return wait_until_none(
            lambda: differences(self.trouble, self.look(), others),
            self.trouble.appears_within_s,
            LASTING_INTERVAL_S if self.trouble.lasts else LOOK_INTERVAL_S,
        )

    def wait_until_disappeared(self) -> float:
        """Wait until nothing of it is left at its connector."""
        within_s = self.trouble.disappears_within_s
        return wait_until_none(lambda: connector_remainders(self.look()), within_s)


def lies_of(rows: Sequence[RowOfGroup]) -> list[str]:
    """Look once, and return what claims that all is well."""
    looks = Looks()
    return [text for row in rows for text in lies(row.trouble, row.look(looks))]


def remainders_of(rows: Sequence[RowOfGroup]) -> list[str]:
    """Look once, and return what is not well yet."""
    looks = Looks()
    return [text for row in rows for text in remainders(row.look(looks))]


@pytest.mark.soak
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
    seconds = wait_until_none(
        lambda: differences(trouble, look()), trouble.appears_within_s, LOOK_INTERVAL_S
    )
    if trouble.lasts:
        wait_while_none(lambda: lies(trouble, look()), trouble.watched_s)
    return seconds


def wait_until_none(
    find: Callable[[], list[str]], within_s: float, interval_s: float = LASTING_INTERVAL_S
) -> float:
    """Wait until nothing is found; return how many seconds that took."""
    began = time.monotonic()
    while True:
        looked_s = time.monotonic() - began
        found = find()
        if not found:
            return looked_s
        assert looked_s < FACTOR * within_s + MORE_S, f"after {looked_s:.0f} s: " + "\n".join(found)
        time.sleep(interval_s)


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
