"""`sparkmirror demo`: a live mirror between two real clusters on this computer, checked at the end.

    1. starts two clusters, a producer and a consumer group
    2. runs `sparkmirror run mm2.properties`, both ways
    3. shows a live view until Ctrl-C or for a given time
    4. reads all records back from both clusters and compares them

The demo leaves nothing behind. The exit code is 0 only if all checks hold.
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
from sparkmirror.cli.progress_line import progress_line
from sparkmirror.cli.worker_live_view import WorkerLiveView, WorkerPoller, render, summary_line
from sparkmirror.cli.worker_rest_client import WorkerRestClient
from sparkmirror.cluster.produce_and_consume import ProducerRecord
from sparkmirror.errors import LabError, RequestFailed
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, TopicSpec
from sparkmirror.lab.kafka.jar_cache import JarCache
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_identity import Process
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
    """Mirror two real clusters, live, and check every record at the end."""
    console = rich.console.Console(highlight=False)
    with (
        ProcessReaper.start() as reaper,
        tempfile.TemporaryDirectory(prefix="sparkmirror-demo-") as home,
    ):
        reaper.remove_on_exit(Path(home))
        with _running_environment(console, Path(home), reaper) as environment:
            workload = DemoWorkload(environment.primary.access(), PRIMARY_TOPICS)
            workload.start()
            try:
                _watch(console, environment, seconds)
            finally:
                workload.stop()
            if workload.failure:
                raise workload.failure
            return _run_checks(console, environment, workload)


# -- clusters and mirror -----------------------------------------------------------------------


@contextmanager
def _running_environment(
    console: rich.console.Console, home: Path, reaper: ProcessReaper
) -> Iterator[DemoEnvironment]:
    primary, backup = _start_clusters(home, reaper)
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
    mirror = reaper.launch(command, log=log, cwd=home)
    try:
        yield DemoEnvironment(primary=primary, backup=backup, mirror=mirror, log=log, url=url)
    finally:
        mirror.send_signal(signal.SIGTERM)
        if not mirror.wait_for_exit(STOP_TIMEOUT_S):
            mirror.send_signal(signal.SIGKILL)
            mirror.wait_for_exit(STOP_TIMEOUT_S)
        for cluster in (primary, backup):
            cluster.kill()


def _start_clusters(home: Path, reaper: ProcessReaper) -> tuple[Cluster, Cluster]:
    specs = [
        ClusterSpec(name="primary", topics=_topic_specs(PRIMARY_TOPICS), fast_start=True),
        ClusterSpec(name="backup", topics=_topic_specs(BACKUP_TOPICS), fast_start=True),
    ]
    with progress_line() as progress:
        JarCache().ensure(specs[0].version, progress.on_download)
        started = {c.name: c for c in Cluster.start_all(specs, home, reaper, progress.show)}
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


def _watch(
    console: rich.console.Console, environment: DemoEnvironment, seconds: float | None
) -> None:
    """Show the live view until the time is over or the operator presses Ctrl-C."""
    how_long = "Ctrl-C ends it" if seconds is None else f"it ends {seconds:g} s after the first"
    poller = WorkerPoller(WorkerRestClient(environment.url))
    try:
        console.print(f"Spark is starting; records follow in some seconds ({how_long}).")
        if not console.is_terminal:
            last_line = ""
            for view in _poll_views(environment, poller, seconds):
                if summary_line(view) != last_line:
                    last_line = summary_line(view)
                    console.print(last_line, soft_wrap=True, markup=False)
            return
        with rich.live.Live(console=console, auto_refresh=False) as live:
            for view in _poll_views(environment, poller, seconds):
                live.update(render(view), refresh=True)
    except KeyboardInterrupt:
        console.print("Now checking everything (Ctrl-C again skips that).")


def _poll_views(
    environment: DemoEnvironment, poller: WorkerPoller, seconds: float | None
) -> Iterator[WorkerLiveView]:
    started_at = time.monotonic()
    first: float | None = None
    while True:
        _require_running(environment)
        now = time.monotonic()
        try:
            view = poller.poll(now)
        except RequestFailed:
            view = None  # its REST API is about to listen
        if view:
            yield view
            if first is None and view.records:
                first = now
        if first is None and now - started_at > FIRST_RECORD_TIMEOUT_S:
            raise LabError(
                f"no record was mirrored in {FIRST_RECORD_TIMEOUT_S:.0f} s:"
                f" {_last_lines(environment.log)}"
            )
        if first is not None and seconds is not None and now - first >= seconds:
            return
        time.sleep(REFRESH_INTERVAL_S)


def _require_running(environment: DemoEnvironment) -> None:
    if not environment.mirror.is_running():
        raise LabError(f"the mirror has ended: {_last_lines(environment.log)}")


def _last_lines(log: Path) -> str:
    return " | ".join(log.read_text("utf-8", "replace").splitlines()[-3:])


# -- checking ----------------------------------------------------------------------------------


def _run_checks(
    console: rich.console.Console, environment: DemoEnvironment, workload: DemoWorkload
) -> int:
    primary, backup = environment.primary.access(), environment.backup.access()
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
            workload.committed,
            primary,
            backup,
            lambda topic: f"primary.{topic}",
            CHECK_TIMEOUT_S,
        ),
    ]
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, title="Checked")
    for heading in ("what", "found", ""):
        table.add_column(heading)
    for result in findings:
        mark = rich.text.Text("holds", "green") if result.passed else rich.text.Text("FAILS", "red")
        table.add_row(result.subject, result.detail, mark)
    console.print(table)
    holds = all(result.passed for result in findings)
    console.print("Everything holds." if holds else "NOT everything holds.")
    return 0 if holds else CHECK_FAILED
