"""The directory of the receipts, as far as the driver can check it without Spark.

Spark reports a full disk or a missing right as a failed job. A small file written by the driver
itself fails with the error of the operating system.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

_PROBE_BYTES = 1 << 16


def directory_error(receipts: str) -> str:
    """Create the directory and write a small file there; return the error, empty if it succeeds.

    A URI is not checked: only Spark can write there.
    """
    if "://" in receipts:
        return ""
    directory = Path(receipts)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Spark ignores files whose names begin with a dot.
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".sparkmirror-") as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    return ""
