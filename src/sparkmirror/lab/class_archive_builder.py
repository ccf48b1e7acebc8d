"""Builds the class archive of Kafka's brokers, which makes them start in half the time.

    python -m sparkmirror.lab.class_archive_builder    builds it if there is none

The builder runs one broker and sends it the requests of a mirror, over TLS and with a login. Its
JVM writes all loaded classes when it ends.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

from sparkmirror.errors import MirrorError
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.kafka.class_archive import dump_options
from sparkmirror.lab.kafka.kafka_installation import KafkaInstallation
from sparkmirror.lab.mirror_requests import send_mirror_requests
from sparkmirror.lab.processes.file_locks import locked
from sparkmirror.lab.processes.process_reaper import ProcessReaper

log = logging.getLogger(__name__)

DUMP_TIMEOUT_S = 300.0
_POLL_INTERVAL_S = 0.1
_NAME = "class-archive"
_USER = "builder"


def ensure_archive() -> Path | None:
    """Return the archive of the default version; build it if there is none. Blocks.

    Returns None if the JVM writes none: some builds of Java have no class data sharing. Raises
    LabError, ClusterError or JavaMissing.
    """
    archive = KafkaInstallation(ClusterSpec(name=_NAME)).class_archive
    with locked(archive.parent / f".lock-{archive.name}", _log_wait):
        if not archive.is_file():
            _build(archive)
    return archive if archive.is_file() else None


def _build(archive: Path) -> None:
    draft = archive.with_suffix(f".{os.getpid()}")
    spec = ClusterSpec(
        name=_NAME,
        listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_SSL),
        authorizer=True,
        users={_USER: secrets.token_hex()},
        super_users=(_USER,),
        fast_start=True,
        jvm_options=dump_options(draft),
    )
    with tempfile.TemporaryDirectory(prefix="sparkmirror-") as directory, ProcessReaper() as reaper:
        (cluster,) = Cluster.start_all([spec], Path(directory), reaper)
        send_mirror_requests(cluster.access(ListenerProtocol.SASL_SSL))
        broker = cluster.broker(1)
        broker.terminate()
        deadline = time.monotonic() + DUMP_TIMEOUT_S
        while broker.is_running() and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)
        is_complete = not broker.is_running()
        cluster.remove()
    if is_complete and draft.is_file():
        draft.replace(archive)
    else:
        draft.unlink(missing_ok=True)
        log.warning("Java wrote no class archive; brokers start without one")


def _log_wait(holder: str) -> None:
    log.info("Waiting for %s, which builds the class archive", holder)


def main() -> None:
    """Print the path of the archive, if there is one after the attempt."""
    try:
        archive = ensure_archive()
    except MirrorError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{archive or 'no class archive'}\n")


if __name__ == "__main__":
    main()
