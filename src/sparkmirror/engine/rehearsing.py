"""A driver process that rehearses: `python -m sparkmirror.engine.rehearsing`."""

from __future__ import annotations

from functools import partial

from sparkmirror.engine.archive import DUMP_WITHIN_S
from sparkmirror.engine.driver import main
from sparkmirror.engine.rehearsal import Rehearsal

if __name__ == "__main__":
    # The JVM leaves a class archive when it ends, which takes its time on a busy computer.
    main(partial(Rehearsal, stay=True), DUMP_WITHIN_S)
