"""The images and containers of the tests: a storage in the cache, built and started by root.

Nothing is pulled. debootstrap makes the base image `debian:bookworm-slim` once; its layers and
those of earlier builds stay in the cache.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkmirror.directories import cache_directory
from tests.support.image.builder_tools import checked_output

BASE = "docker.io/library/debian:bookworm-slim"
SUITE = "bookworm"
DEFAULT_MIRROR = "http://deb.debian.org/debian"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
MOUNTED_CERTIFICATES = "/run/certificates-of-the-builder.crt"
ENGINE_SETTINGS = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


class ContainerStorage:
    """A storage of buildah and podman with a directory for the run."""

    def __init__(self, root: Path, directory: Path) -> None:
        """Open or create the storage `root`; `directory` is for files of this run."""
        self._directory = directory
        # The path of sockets must be short, and a storage keeps the one with which it was made.
        run = f"/run/sparkmirror-image-{zlib.crc32(bytes(root)):x}"
        self._options = ("--root", str(root), "--runroot", run, "--storage-driver", "overlay")
        self._settings = directory / "containers.conf"
        self._settings.write_text(ENGINE_SETTINGS, "ascii")

    def podman(self, *arguments: str | os.PathLike[str]) -> str:
        """Run podman, which must succeed; return its standard output."""
        return checked_output(self.command(*arguments), self.environment)

    def command(self, *arguments: str | os.PathLike[str]) -> list[str]:
        """Return the command line of podman."""
        return ["podman", *self._options, *map(str, arguments)]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of podman."""
        # Without systemd nothing calls the health check at intervals; the tests call it.
        settings = {"CONTAINERS_CONF": str(self._settings), "DISABLE_HC_SYSTEMD": "true"}
        return {**os.environ, **settings}

    def build(self, context: Path, dockerfile: Path, tag: str) -> None:
        """Build an image for docker from its file. The base image must be there."""
        command = ["buildah", *self._options, "build", "--isolation", "chroot", "--layers"]
        command += ["--jobs", "2", "--format", "docker", "--pull-never", "--file", str(dockerfile)]
        for source, target in self._mounts_of_pip().items():
            command += ["--volume", f"{source}:{target}:ro"]
        checked_output([*command, "--tag", tag, str(context)], self.environment)

    def remove_containers(self) -> None:
        """Remove all containers, those of builds that did not end too. Images stay."""
        self.podman("rm", "--all", "--force", "--time", "0")
        checked_output(["buildah", *self._options, "rm", "--all"], self.environment)

    def make_base(self) -> None:
        """Make the base image, unless it is there."""
        if not self.podman("images", "--quiet", BASE).strip():
            root = self._directory / "base"
            options = ("--variant=minbase", "--include=ca-certificates")
            checked_output(["debootstrap", *options, SUITE, root, debian_mirror()])
            shutil.rmtree(root / "var" / "lib" / "apt" / "lists")
            shutil.rmtree(root / "var" / "cache" / "apt" / "archives")
            archive = self._directory / "base.tar"
            checked_output(["tar", "-C", root, "-cf", archive, "."])
            self.podman("import", archive, BASE)
            archive.unlink()
            shutil.rmtree(root)

    def _mounts_of_pip(self) -> dict[Path, str]:
        """The package index and the certificates of this computer, for pip in the build."""
        file = configparser.RawConfigParser()
        file["global"] = pip_settings()
        mounts = {}
        if CERTIFICATES.is_file():
            file["global"]["cert"] = MOUNTED_CERTIFICATES
            mounts[CERTIFICATES] = MOUNTED_CERTIFICATES
        written = self._directory / "pip.conf"
        with written.open("w", encoding="utf-8") as out:
            file.write(out)
        return {**mounts, written: "/etc/pip.conf"}


@contextmanager
def container_storage() -> Iterator[ContainerStorage]:
    """Open the storage of this user's cache; remove the containers at the end."""
    with tempfile.TemporaryDirectory(prefix="sparkmirror-image-") as directory:
        root = cache_directory(os.environ) / "image"
        root.mkdir(parents=True, exist_ok=True)
        storage = ContainerStorage(root, Path(directory))
        try:
            yield storage
        finally:
            storage.remove_containers()


def pip_settings() -> dict[str, str]:
    """Return where pip of this computer finds packages."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    wanted = r"^(?:global|:env:)\.(index-url|extra-index-url|trusted-host|timeout)='(.*)'$"
    return dict(re.findall(wanted, listed.stdout, re.MULTILINE))


def debian_mirror() -> str:
    """Return from where apt of this computer gets this Debian; the public mirror otherwise."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(rf"^{SUITE} main (\S+/debian/?)$", listed.stdout, re.MULTILINE)
    return found[1] if found else DEFAULT_MIRROR
