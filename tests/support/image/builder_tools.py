"""The programs that build and start the image, and whether they can be had here.

`python -m tests.support.image.builder_tools` installs those that are missing with apt-get, if root
calls it. `make test-image` does that. With `--check` it exits with 1 if no image can be built here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

TOOLS = ("buildah", "podman", "runc", "debootstrap")
"""The programs, and the Debian packages that have them."""


def missing_tools() -> tuple[str, ...]:
    """Return the programs that are not installed."""
    return tuple(tool for tool in TOOLS if shutil.which(tool) is None)


def no_builder_reason() -> str | None:
    """Return why no image can be built on this computer; None if it can."""
    if os.geteuid() != 0:
        return "root builds the image: debootstrap makes its base"
    if missing := missing_tools():
        return f"{', '.join(missing)}: not installed, and apt-get could not install it"
    if _run("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt").returncode:
        return "this computer does not let root mount file systems"
    return None


def install_missing_tools() -> None:
    """Install what is missing, if root calls it and there is apt-get. Prints what it does."""
    missing = missing_tools()
    if not missing or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    sys.stdout.write(f"Installing {', '.join(missing)} to build the image.\n")
    sys.stdout.flush()
    arguments = ("install", "--yes", "--no-install-recommends", *missing)
    if _run("apt-get", *arguments).returncode:
        _run("apt-get", "update")
        sys.stdout.write(_run("apt-get", *arguments).stderr)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def checked_output(
    command: Sequence[str | os.PathLike[str]], environment: Mapping[str, str] | None = None
) -> str:
    """Run a program that must succeed; return its standard output."""
    ran = subprocess.run(
        list(command), env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{' '.join(map(str, command))}: {ran.stdout}\n{ran.stderr}"
    return ran.stdout


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(no_builder_reason() is not None)
    install_missing_tools()
