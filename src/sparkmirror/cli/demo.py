"""`sparkmirror demo`: a live mirror between two real clusters on this computer, checked in the end.

    1. two clusters, with somebody who writes and a consumer group that reads
    2. `sparkmirror run mm2.properties` beside them, both ways
    3. a live view, until Ctrl-C or for so long
    4. everything read back from both sides and compared

Everything is gone when it ends. The exit code is 0 only if all that was checked holds.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import rich.box
import rich.console
import rich.live
import rich.table
import rich.text

from sparkmirror.cli import demo_check
from sparkmirror.cli.demo_load import GROUP, Load
from sparkmirror.cli.flow_view import View, Watcher, line, rendered
from sparkmirror.cli.mirror_api import MirrorApi
from sparkmirror.cli.progress import ticking
from sparkmirror.cluster.record import NewRecord
from sparkmirror.errors import LabError, RequestFailed
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.jars import Jars
from sparkmirror.lab.ports import Ports
from sparkmirror.lab.process import Process
from sparkmirror.lab.spec import ClusterSpec, TopicSpec

THERE = {"orders": 3, "payments": 1}
"""Topics of the primary, by partitions."""
BACK = {"returns": 1}
RECORDS = 1_000
LOOK_EVERY_S = 1.0
FIRST_RECORD_S = 300.0
CHECK_S = 180.0
END_S = 20.0
NOT_ALL_HOLDS = 2

FILE = """\
# An ordinary mm2.properties: MirrorMaker 2 and sparkmirror read it alike.
clusters = primary, backup
primary.bootstrap.servers = {primary}
backup.bootstrap.servers = {backup}
primary->backup.enabled = true
primary->backup.topics = orders, pay.*
backup->primary.enabled = true
backup->primary.topics = returns
sync.group.offsets.enabled = true
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
emit.checkpoints.interval.seconds = 1
sync.group.offsets.interval.seconds = 1
refresh.groups.interval.seconds = 2
listeners = {listener}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The two clusters, the mirror beside them, and where its REST API is."""

    primary: Cluster
    backup: Cluster
    mirror: Process
    log: Path
    url: str


@click.command()
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End by itself so long after the first record was mirrored; without it, Ctrl-C ends it.",
)
def demo(seconds: float | None) -> int:
    """Mirror two real clusters, live, and check every record in the end."""
    console = rich.console.Console(highlight=False)
    with Guard.watch() as guard, tempfile.TemporaryDirectory(prefix="sparkmirror-demo-") as home:
        guard.remove_at_end(Path(home))
        with _scene(console, Path(home), guard) as scene:
            load = Load(scene.primary.access(), THERE)
            load.start()
            try:
                _watch(console, scene, seconds)
            finally:
                load.stop()
            if load.failure:
                raise load.failure
            return _check(console, scene, load)


# -- the scene ---------------------------------------------------------------------------------


@contextmanager
def _scene(console: rich.console.Console, home: Path, guard: Guard) -> Iterator[Scene]:
    primary, backup = _start(home, guard)
    (port,) = Ports().claim(1, home)
    url = f"http://127.0.0.1:{port}"
    file = home / "mm2.properties"
    text = FILE.format(primary=primary.bootstrap(), backup=backup.bootstrap(), listener=url)
    file.write_text(text, "utf-8")
    console.print(f"Two clusters are up: primary at {primary.bootstrap()}, backup at", end=" ")
    console.print(f"{backup.bootstrap()}. Now: sparkmirror run {file}", soft_wrap=True)
    log = home / "mirror.log"
    command = [sys.executable, "-m", "sparkmirror", "run", str(file)]
    mirror = guard.launch(command, log=log, cwd=home)
    try:
        yield Scene(primary=primary, backup=backup, mirror=mirror, log=log, url=url)
    finally:
        mirror.send(signal.SIGTERM)
        if not mirror.ended_within(END_S):
            mirror.send(signal.SIGKILL)
            mirror.ended_within(END_S)
        for cluster in (primary, backup):
            cluster.kill()


def _start(home: Path, guard: Guard) -> tuple[Cluster, Cluster]:
    specs = [
        ClusterSpec(name="primary", topics=_topics(THERE), fast_start=True),
        ClusterSpec(name="backup", topics=_topics(BACK), fast_start=True),
    ]
    with ticking() as ticker:
        Jars().ensure(specs[0].version, ticker.fetch)
        started = {c.name: c for c in Cluster.start_all(specs, home, guard, ticker.say)}
    return started["primary"], started["backup"]


def _topics(topics: dict[str, int]) -> tuple[TopicSpec, ...]:
    return tuple(
        TopicSpec(name=name, partitions=count, records=_records(count))
        for name, count in topics.items()
    )


def _records(partitions: int) -> tuple[NewRecord, ...]:
    return tuple(
        NewRecord(
            key=f"key-{number % 17}".encode(),
            value=f"record {number}".encode(),
            headers=(("number", str(number).encode()),),
            partition=number % partitions,
        )
        for number in range(RECORDS)
    )


# -- watching ----------------------------------------------------------------------------------


def _watch(console: rich.console.Console, scene: Scene, seconds: float | None) -> None:
    """Show what happens until it is time, or until somebody has seen enough."""
    how_long = "Ctrl-C ends it" if seconds is None else f"it ends {seconds:g} s after the first"
    watcher = Watcher(MirrorApi(scene.url))
    try:
        console.print(f"Spark is starting; records follow in some seconds ({how_long}).")
        if not console.is_terminal:
            said = ""
            for view in _views(scene, watcher, seconds):
                if line(view) != said:
                    said = line(view)
                    console.print(said, soft_wrap=True)
            return
        with rich.live.Live(console=console, auto_refresh=False) as live:
            for view in _views(scene, watcher, seconds):
                live.update(rendered(view), refresh=True)
    except KeyboardInterrupt:
        console.print("Enough seen; now everything is checked (Ctrl-C again to skip that).")


def _views(scene: Scene, watcher: Watcher, seconds: float | None) -> Iterator[View]:
    began = time.monotonic()
    first: float | None = None
    while True:
        _demand_life(scene)
        now = time.monotonic()
        try:
            view = watcher.look(now)
        except RequestFailed:
            view = None  # its REST API is about to listen
        if view:
            yield view
            if first is None and view.records:
                first = now
        if first is None and now - began > FIRST_RECORD_S:
            raise LabError(f"no record was mirrored in {FIRST_RECORD_S:.0f} s: {_last(scene.log)}")
        if first is not None and seconds is not None and now - first >= seconds:
            return
        time.sleep(LOOK_EVERY_S)


def _demand_life(scene: Scene) -> None:
    if not scene.mirror.runs():
        raise LabError(f"the mirror has ended: {_last(scene.log)}")


def _last(log: Path) -> str:
    return " | ".join(log.read_text("utf-8", "replace").splitlines()[-3:])


# -- checking ----------------------------------------------------------------------------------


def _check(console: rich.console.Console, scene: Scene, load: Load) -> int:
    primary, backup = scene.primary.access(), scene.backup.access()
    console.print("Reading everything back from both clusters ...")
    findings = [
        *(
            demo_check.contents(primary, topic, backup, f"primary.{topic}", CHECK_S)
            for topic in THERE
        ),
        *(
            demo_check.contents(backup, topic, primary, f"backup.{topic}", CHECK_S)
            for topic in BACK
        ),
        demo_check.translation(
            GROUP, load.committed, primary, backup, lambda topic: f"primary.{topic}", CHECK_S
        ),
    ]
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, title="Checked")
    for heading in ("what", "found", ""):
        table.add_column(heading)
    for one in findings:
        mark = rich.text.Text("holds", "green") if one.holds else rich.text.Text("FAILS", "red")
        table.add_row(one.what, one.detail, mark)
    console.print(table)
    holds = all(one.holds for one in findings)
    console.print("Everything holds." if holds else "NOT everything holds.")
    return 0 if holds else NOT_ALL_HOLDS
