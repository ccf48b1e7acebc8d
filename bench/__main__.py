"""`python -m bench [NAME...]`: run the benchmarks named, or all. Each reports ratios of one run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> None:
    """Run them one after the other."""
    known = sorted(
        path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_")
    )
    wanted = sys.argv[1:] or known
    for name in wanted:
        if name not in known:
            sys.exit(f"There is no benchmark {name!r}; there are: {', '.join(known)}")
        print(f"== {name}")
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
