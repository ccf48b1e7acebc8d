"""`python -m tests.fuzz`: fuzz every parser and print the numbers.

The seed is printed; the same seed gives the same inputs. A parser that fails prints its input, the
others go on, and the exit code is 1.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import logging
import secrets
import sys

from tests.fuzz.fuzz_target import FuzzFailure, run_target
from tests.fuzz.rest_requests import send_requests
from tests.fuzz.targets import all_targets

REST_REQUESTS = "REST requests of /openapi.json"
REQUEST_COST = 10
"""A request of schemathesis costs far more than other inputs: there are so many times fewer."""


def main() -> int:
    """Fuzz; return the exit code."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="for each parser")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--only", default="", help="parsers whose name contains this text")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # the server logs every request that is not HTTP
    only, seed = options.only.lower(), options.seed
    print(f"seed {seed}")
    print(f"{'parser':32}{'inputs':>8}{'accepted':>10}{'refused':>9}{'slowest':>10}{'memory':>11}")
    failures = 0
    for target in all_targets():
        if only not in target.name.lower():
            continue
        try:
            report = run_target(target, options.inputs, seed)
        except FuzzFailure as failure:
            print(failure)
            failures += 1
            continue
        print(
            f"{report.name:32}{report.inputs:>8}{report.accepted:>10}{report.refused:>9}"
            f"{report.slowest_s * 1000:>7.0f} ms{report.peak_bytes / 1024:>8.0f} KB",
            flush=True,
        )
    if only in REST_REQUESTS.lower():
        answers = send_requests(max(options.inputs // REQUEST_COST, 1), seed)
        refused = sum(count for answer, count in answers.items() if answer[-3] in "45")
        total = answers.total()
        print(f"{REST_REQUESTS:32}{total:>8}{total - refused:>10}{refused:>9}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
