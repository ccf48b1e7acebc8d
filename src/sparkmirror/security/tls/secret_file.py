"""A file for a library that reads secrets from files only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def secret_file(content: bytes) -> Iterator[str]:
    """Yield a path to a file with the content. The file exists until the block ends.

    It is in memory if the system has such files, else it belongs to this user alone.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("identity")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(content)
            file.flush()
            yield file.name
