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

from sparkmirror.cli.demo import checks
from sparkmirror.cli.demo.workload import GROUP, DemoWorkload
from sparkmirror.cli.live_view import LiveView, WorkerPoller, render, summary_line
from sparkmirror.cli.progress_line import progress_line
from sparkmirror.cli.worker_rest_client import WorkerRestClient
from sparkmirror.cluster.topic_contents import ProducerRecord
from sparkmirror.errors import LabError, RequestFailed
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, TopicSpec
from sparkmirror.lab.kafka.jar_cache import JarCache
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper

PRIMARY_TOPICS = {"orders": 3, "payments": 1}
"""Topics of the primary, by partitions."""
BACKUP_TOPICS = {"returns": 1}
RECORDS_PER_TOPIC = 1_000
REFRESH_INTERVAL_S = 1.0
FIRST_RECORD_TIMEOUT_S = 300.0
CHECK_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 20.0
CHECK_FAILED = 2

MM2_PROPERTIES = """\
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
class DemoEnvironment:
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
    with (
        ProcessReaper.start() as guard,
        tempfile.TemporaryDirectory(prefix="sparkmirror-demo-") as home,
    ):
        guard.remove_on_exit(Path(home))
        with _running_environment(console, Path(home), guard) as scene:
            load = DemoWorkload(scene.primary.access(), PRIMARY_TOPICS)
            load.start()
            try:
                _watch(console, scene, seconds)
            finally:
                load.stop()
            if load.failure:
                raise load.failure
            return _run_checks(console, scene, load)


# -- the scene ---------------------------------------------------------------------------------


@contextmanager
def _running_environment(
    console: rich.console.Console, home: Path, guard: ProcessReaper
) -> Iterator[DemoEnvironment]:
    primary, backup = _start_clusters(home, guard)
    (port,) = PortRegistry().claim(1, home)
    url = f"http://127.0.0.1:{port}"
    file = home / "mm2.properties"
    text = MM2_PROPERTIES.format(
        primary=primary.bootstrap_servers(), backup=backup.bootstrap_servers(), listener=url
    )
    file.write_text(text, "utf-8")
    console.print(
        f"Two clusters are up: primary at {primary.bootstrap_servers()}, backup at", end=" "
    )
    console.print(f"{backup.bootstrap_servers()}. Now: sparkmirror run {file}", soft_wrap=True)
    log = home / "mirror.log"
    command = [sys.executable, "-m", "sparkmirror", "run", str(file)]
    mirror = guard.launch(command, log=log, cwd=home)
    try:
        yield DemoEnvironment(primary=primary, backup=backup, mirror=mirror, log=log, url=url)
    finally:
        mirror.send_signal(signal.SIGTERM)
        if not mirror.wait_for_exit(STOP_TIMEOUT_S):
            mirror.send_signal(signal.SIGKILL)
            mirror.wait_for_exit(STOP_TIMEOUT_S)
        for cluster in (primary, backup):
            cluster.kill()


def _start_clusters(home: Path, guard: ProcessReaper) -> tuple[Cluster, Cluster]:
    specs = [
        ClusterSpec(name="primary", topics=_topic_specs(PRIMARY_TOPICS), fast_start=True),
        ClusterSpec(name="backup", topics=_topic_specs(BACKUP_TOPICS), fast_start=True),
    ]
    with progress_line() as ticker:
        JarCache().ensure(specs[0].version, ticker.on_download)
        started = {c.name: c for c in Cluster.start_all(specs, home, guard, ticker.show)}
    return started["primary"], started["backup"]


def _topic_specs(topics: dict[str, int]) -> tuple[TopicSpec, ...]:
    return tuple(
        TopicSpec(name=name, partitions=count, records=_records(count))
        for name, count in topics.items()
    )


def _records(partitions: int) -> tuple[ProducerRecord, ...]:
    return tuple(
        ProducerRecord(
            key=f"key-{number % 17}".encode(),
            value=f"record {number}".encode(),
            headers=(("number", str(number).encode()),),
            partition=number % partitions,
        )
        for number in range(RECORDS_PER_TOPIC)
    )


# -- watching ----------------------------------------------------------------------------------


def _watch(console: rich.console.Console, scene: DemoEnvironment, seconds: float | None) -> None:
    """Show what happens until it is time, or until somebody has seen enough."""
    how_long = "Ctrl-C ends it" if seconds is None else f"it ends {seconds:g} s after the first"
    watcher = WorkerPoller(WorkerRestClient(scene.url))
    try:
        console.print(f"Spark is starting; records follow in some seconds ({how_long}).")
        if not console.is_terminal:
            said = ""
            for view in _poll_views(scene, watcher, seconds):
                if summary_line(view) != said:
                    said = summary_line(view)
                    console.print(said, soft_wrap=True)
            return
        with rich.live.Live(console=console, auto_refresh=False) as live:
            for view in _poll_views(scene, watcher, seconds):
                live.update(render(view), refresh=True)
    except KeyboardInterrupt:
        console.print("Enough seen; now everything is checked (Ctrl-C again to skip that).")


def _poll_views(
    scene: DemoEnvironment, watcher: WorkerPoller, seconds: float | None
) -> Iterator[LiveView]:
    began = time.monotonic()
    first: float | None = None
    while True:
        _require_running(scene)
        now = time.monotonic()
        try:
            view = watcher.poll(now)
        except RequestFailed:
            view = None  # its REST API is about to listen
        if view:
            yield view
            if first is None and view.records:
                first = now
        if first is None and now - began > FIRST_RECORD_TIMEOUT_S:
            raise LabError(
                f"no record was mirrored in {FIRST_RECORD_TIMEOUT_S:.0f} s:"
                f" {_last_lines(scene.log)}"
            )
        if first is not None and seconds is not None and now - first >= seconds:
            return
        time.sleep(REFRESH_INTERVAL_S)


def _require_running(scene: DemoEnvironment) -> None:
    if not scene.mirror.is_running():
        raise LabError(f"the mirror has ended: {_last_lines(scene.log)}")


def _last_lines(log: Path) -> str:
    return " | ".join(log.read_text("utf-8", "replace").splitlines()[-3:])


# -- checking ----------------------------------------------------------------------------------


def _run_checks(console: rich.console.Console, scene: DemoEnvironment, load: DemoWorkload) -> int:
    primary, backup = scene.primary.access(), scene.backup.access()
    console.print("Reading everything back from both clusters ...")
    findings = [
        *(
            checks.check_topic(primary, topic, backup, f"primary.{topic}", CHECK_TIMEOUT_S)
            for topic in PRIMARY_TOPICS
        ),
        *(
            checks.check_topic(backup, topic, primary, f"backup.{topic}", CHECK_TIMEOUT_S)
            for topic in BACKUP_TOPICS
        ),
        checks.check_group_offsets(
            GROUP,
            load.committed,
            primary,
            backup,
            lambda topic: f"primary.{topic}",
            CHECK_TIMEOUT_S,
        ),
    ]
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, title="Checked")
    for heading in ("what", "found", ""):
        table.add_column(heading)
    for one in findings:
        mark = rich.text.Text("holds", "green") if one.passed else rich.text.Text("FAILS", "red")
        table.add_row(one.subject, one.detail, mark)
    console.print(table)
    holds = all(one.passed for one in findings)
    console.print("Everything holds." if holds else "NOT everything holds.")
    return 0 if holds else CHECK_FAILED
