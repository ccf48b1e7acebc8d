"""Java libraries from Maven, called from Python; fetched once into the cache of the lab."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sparkmirror.directories import cache_directory
from sparkmirror.java.java_runtime import find_java
from sparkmirror.lab.kafka.ivy import Ivy, MavenCoordinates
from sparkmirror.lab.processes.file_locks import locked

log = logging.getLogger(__name__)


def fetch_library(wanted: MavenCoordinates) -> Path:
    """Return a directory with the jars of the library and of its dependencies."""
    root = cache_directory(os.environ) / "libraries"
    directory = root / f"{wanted.module}-{wanted.revision}"
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / f".lock-{directory.name}", lambda who: log.info("Waiting for %s", who)):
        if not directory.exists():
            work = root / f".fetching-{directory.name}"
            Ivy(work, find_java()).retrieve([wanted], work / "jars", lambda _: None)
            (work / "jars").rename(directory)
            shutil.rmtree(work, ignore_errors=True)
    return directory


@contextmanager
def running_jvm(jars: Path) -> Iterator[Any]:
    """Run a JVM with these jars; yield the root of its packages."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    home = Path(spec.submodule_search_locations[0])
    (bridge,) = (home / "jars").glob("py4j-*.jar")
    py4j: Any = import_module("py4j.java_gateway")  # comes with pyspark, and has no types
    port, token, process = py4j.launch_gateway(
        jarpath=str(bridge),
        classpath=":".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
        java_path=str(find_java().path),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    address = py4j.GatewayParameters(port=port, auth_token=token)
    gateway = py4j.JavaGateway(gateway_parameters=address)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(60)
