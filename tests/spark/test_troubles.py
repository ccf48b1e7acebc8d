"""Every trouble of the table, provoked on real clusters: every surface tells it, and then its end.

One worker and one source connector serve all rows. The rows of `troubles.trouble_table` without a
provocation name the test that proves them. The log (`--log-cli-level=INFO`) has the seconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.spark.troubles.comparison import differences, lies, remainders
from tests.spark.troubles.provocations import PROVOCATIONS
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

PATIENCE = 20
"""A busy computer may take so many times as long as the table says."""
STAYS_S = 2.0
LOOK_INTERVAL_S = 0.2
ROWS = [trouble for trouble in TROUBLES if trouble.name in PROVOCATIONS]


@pytest.fixture(scope="module")
def mirror(
    reaper: ProcessReaper, lab_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TroubledMirror]:
    """A worker that copies a topic per row."""
    specs = [cluster_spec("troubles-source"), cluster_spec("troubles-target")]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    directory = tmp_path_factory.mktemp("troubles")
    with running_mirror(source, target, directory, [row.name for row in ROWS]) as started:
        yield started
    for cluster in (source, target):
        cluster.remove()


@pytest.mark.parametrize("trouble", ROWS, ids=lambda trouble: trouble.name)
def test_every_surface_tells_a_trouble(mirror: TroubledMirror, trouble: Trouble) -> None:
    topic = f"{TOPIC_PREFIX}{trouble.name}"
    main = Subject(connector=MAIN, topic=topic)
    since = beginning(mirror.program, main)
    with PROVOCATIONS[trouble.name](mirror, topic) as subject:
        program = subject.program or mirror.program
        began = Beginning() if subject.program else since

        def look() -> Surfaces:
            return read_surfaces(program, subject, began)

        appeared_s = wait_until_none(
            lambda: differences(trouble, look()), PATIENCE * trouble.appears_within_s
        )
        if trouble.lasts:
            wait_while_none(lambda: lies(trouble, look()), STAYS_S)
    healed = main if subject.program else subject
    disappeared_s = wait_until_none(
        lambda: remainders(read_surfaces(mirror.program, healed, since)),
        PATIENCE * trouble.disappears_within_s,
    )
    log.info(
        "%s: appeared after %.1f s (%d), disappeared after %.1f s (%d)",
        trouble.name,
        appeared_s,
        trouble.appears_within_s,
        disappeared_s,
        trouble.disappears_within_s,
    )
    subject.tidy()


def wait_until_none(find: Callable[[], list[str]], timeout_s: float) -> float:
    """Wait until nothing is found; return how many seconds that took."""
    began = time.monotonic()
    while True:
        looked_s = time.monotonic() - began
        found = find()
        if not found:
            return looked_s
        assert looked_s < timeout_s, f"after {looked_s:.0f} s: " + "\n".join(found)
        time.sleep(LOOK_INTERVAL_S)


def wait_while_none(find: Callable[[], list[str]], duration_s: float) -> None:
    """Find nothing for so long."""
    began = time.monotonic()
    while time.monotonic() - began < duration_s:
        found = find()
        assert not found, "\n".join(found)
        time.sleep(LOOK_INTERVAL_S)
