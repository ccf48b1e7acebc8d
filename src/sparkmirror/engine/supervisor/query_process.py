"""Asks a short-lived Spark about a query. Takes the start of a Spark: some seconds."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import sparkmirror
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import DriverLost

MODULE: Final = "sparkmirror.engine.driver.queries.query_main"
TIMEOUT_S: Final = 120.0


def ask_spark(
    request: QueryRequest, environment: Mapping[str, str], module: str = MODULE
) -> QueryAnswer:
    """Return the answer. Blocks. Raises DriverLost if there is none."""
    root = str(Path(sparkmirror.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
    with tempfile.TemporaryDirectory(prefix="sparkmirror-query-") as temporary:
        log = Path(temporary) / "spark.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=temporary,
                env={**environment, "PYTHONPATH": path, "TMPDIR": temporary},
                start_new_session=True,
            )
        try:
            line, _ = process.communicate(request.to_line(), timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise DriverLost(f"Spark gave no answer within {TIMEOUT_S:.0f} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also a JVM that is left
            process.wait()
        if not line:
            last = (log.read_text("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
            raise DriverLost(f"Spark could not check the query: {last}")
    return QueryAnswer.from_line(line)
