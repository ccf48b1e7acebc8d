"""Ports: each belongs to one cluster until the cluster releases it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sparkmirror.errors import LabError
from sparkmirror.lab.processes.port_registry import (
    FIRST_PORT,
    HOST,
    LAST_PORT,
    PortRegistry,
    is_port_free,
)

FOUR = range(20000, 20004)


def always_free(_: int) -> bool:
    return True


@pytest.fixture
def ports(tmp_path: Path) -> PortRegistry:
    return PortRegistry(tmp_path / "registry", FOUR, always_free)


def owner(tmp_path: Path, name: str) -> Path:
    directory = tmp_path / name
    directory.mkdir(exist_ok=True)
    return directory


def test_each_port_is_claimed_once(ports: PortRegistry, tmp_path: Path) -> None:
    first = ports.claim(2, owner(tmp_path, "a"))
    second = ports.claim(2, owner(tmp_path, "b"))
    assert sorted(first + second) == list(FOUR)


def test_second_registry_sees_the_claims_of_the_first(ports: PortRegistry, tmp_path: Path) -> None:
    ports.claim(3, owner(tmp_path, "a"))
    with pytest.raises(LabError, match="No 2 free ports from 20000 to 20003"):
        PortRegistry(tmp_path / "registry", FOUR, always_free).claim(2, owner(tmp_path, "b"))


def test_claim_ends_when_the_directory_is_removed(ports: PortRegistry, tmp_path: Path) -> None:
    removed = owner(tmp_path, "a")
    ports.claim(4, removed)
    removed.rmdir()
    assert len(ports.claim(1, owner(tmp_path, "b"))) == 1
    assert len(list((tmp_path / "registry").glob("[0-9]*"))) == 1


def test_released_ports_can_be_claimed_again(ports: PortRegistry, tmp_path: Path) -> None:
    owner_of_first, other = owner(tmp_path, "a"), owner(tmp_path, "b")
    ports.claim(2, owner_of_first)
    claimed = ports.claim(2, other)
    ports.release(owner_of_first)
    assert not set(ports.claim(2, owner_of_first)) & set(claimed)


def test_port_in_use_is_not_claimed(tmp_path: Path) -> None:
    ports = PortRegistry(tmp_path / "registry", FOUR, free=lambda port: port != 20001)
    assert 20001 not in ports.claim(3, owner(tmp_path, "a"))


def test_port_with_a_listener_is_not_free() -> None:
    with socket.create_server((HOST, 0)) as server:
        assert not is_port_free(server.getsockname()[1])


def test_ports_are_below_the_ephemeral_range() -> None:
    assert 1024 < FIRST_PORT < LAST_PORT < 32768
