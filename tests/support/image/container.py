"""A container of the image: its log, commands inside of it, its health and its end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.image.container_storage import ContainerStorage
from tests.support.waiting import wait_until

SPARK_TIMEOUT_S = 400.0
"""Enough for Spark on a busy computer."""
STOP_S = 60
WITHOUT_RIGHTS = ("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")


class Container:
    """A container that was started."""

    def __init__(self, storage: ContainerStorage, identifier: str) -> None:
        self._storage = storage
        self._identifier = identifier

    def execute(self, *command: str) -> str:
        """Run a command in the container, which must succeed; return its output."""
        return self._storage.podman("exec", self._identifier, *command)

    @property
    def output(self) -> str:
        """What the container has written so far."""
        ran = subprocess.run(
            self._storage.command("logs", self._identifier),
            env=self._storage.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return ran.stdout

    def wait_until_healthy(self) -> None:
        """Wait until the health check of the image succeeds."""

        def is_healthy() -> bool:
            assert self.state()["Running"], self.output
            command = self._storage.command("healthcheck", "run", self._identifier)
            ran = subprocess.run(
                command, env=self._storage.environment, capture_output=True, check=False
            )
            return ran.returncode == 0

        try:
            wait_until(is_healthy, "", SPARK_TIMEOUT_S, interval_s=0.5)
        except AssertionError:
            raise AssertionError(f"the container is not healthy: {self.output}") from None

    def state(self) -> Any:
        """What podman knows of its process."""
        [found] = json.loads(self._storage.podman("inspect", self._identifier))
        return found["State"]

    def stop(self) -> int:
        """Stop it as `docker stop -t 60` does; return its exit code."""
        self._storage.podman("stop", "--time", str(STOP_S), self._identifier)
        return int(self.state()["ExitCode"])


@contextmanager
def running_container(
    storage: ContainerStorage, image: str, *options: str, command: tuple[str, ...] = ()
) -> Iterator[Container]:
    """Run a container in the background of the block, with the network of this computer."""
    arguments = ("run", "--detach", "--network", "host", *options, image, *command)
    identifier = storage.podman(*arguments).strip()
    try:
        yield Container(storage, identifier)
    finally:
        storage.podman("rm", "--force", "--time", "0", identifier)


def run_to_end(
    storage: ContainerStorage, image: str, *command: str
) -> subprocess.CompletedProcess[str]:
    """Run a container until it ends."""
    return subprocess.run(
        storage.command("run", "--rm", "--network", "host", *WITHOUT_RIGHTS, image, *command),
        env=storage.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def image_config(storage: ContainerStorage, image: str) -> Any:
    """What the image says of itself."""
    [found] = json.loads(storage.podman("image", "inspect", image))
    return found
