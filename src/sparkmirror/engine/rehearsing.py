"""A driver process that rehearses: `python -m sparkmirror.engine.rehearsing`."""

from __future__ import annotations

from functools import partial

from sparkmirror.engine.driver import main
from sparkmirror.engine.rehearsal import Rehearsal

if __name__ == "__main__":
    main(partial(Rehearsal, stay=True))
