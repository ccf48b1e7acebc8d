"""`make test-newcomer`: runs `make test` where a newcomer may run it.

The checkout is a fresh clone of HEAD at a path of 120 characters with a space in it. The user is
not root. The home directory is empty. Two busy loops take processor time all the while. It needs
git; if root runs it, also useradd, userdel and runuser: root adds a user and removes it at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATH_LENGTH = 120
BUSY_LOOPS = 2
USER = "sm-newcomer"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The programs that another user of this machine has."""
KEPT_VARIABLES = ("LANG", "JAVA_HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "ARGS")
"""Variables of the caller that the run sees. PIP_* and *_proxy are passed too."""


def long_path(parent: Path) -> Path:
    """Return a path of PATH_LENGTH characters below `parent`, with a space in it."""
    path = parent / "a checkout"
    assert len(str(path)) + 2 < PATH_LENGTH, f"{parent} is too long for a path of this length"
    return path / ("x" * (PATH_LENGTH - len(str(path)) - 1))


@contextmanager
def unprivileged_user(home: Path) -> Iterator[tuple[str, ...]]:
    """Yield the words that start a command as a user who is not root. `home` is that user's."""
    if os.geteuid() != 0:
        yield ()
        return
    # A run that was killed has left its user.
    subprocess.run(["userdel", USER], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), USER], check=True)
    try:
        subprocess.run(["chown", "-R", f"{USER}:{USER}", str(home.parent)], check=True)
        yield ("runuser", "-u", USER, "--")
    finally:
        subprocess.run(["pkill", "-KILL", "-u", USER], check=False)
        subprocess.run(["userdel", USER], check=False)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep `count` processes busy until the block ends."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def newcomers_environment(home: Path) -> dict[str, str]:
    """Return the variables of the run: the caller's network settings, and a home of its own."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    kept |= {k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")}
    path = SYSTEM_PATH if os.geteuid() == 0 else os.environ["PATH"]
    return {**kept, "PATH": path, "HOME": str(home), "TMPDIR": str(home.parent / "tmp")}


def main() -> int:
    """Clone, run, remove; return the exit code of `make test`."""
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-newcomer-"))
    directory.chmod(0o755)
    home, checkout = directory / "home", long_path(directory)
    home.mkdir()
    (directory / "tmp").mkdir()
    targets = sys.argv[1:] or ["test"]
    try:
        subprocess.run(
            ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(checkout)], check=True
        )
        sys.stdout.write(f"make {' '.join(targets)} in {checkout}\n")
        sys.stdout.flush()
        with unprivileged_user(home) as prefix, busy_loops(BUSY_LOOPS):
            run = subprocess.Popen(
                [*prefix, "make", *targets], cwd=checkout, env=newcomers_environment(home)
            )
            try:
                return run.wait()
            except KeyboardInterrupt:
                run.send_signal(signal.SIGINT)
                return run.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
