"""Ports: never the same for two clusters, back when the cluster is gone."""

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


def test_no_port_is_given_twice(ports: PortRegistry, tmp_path: Path) -> None:
    first = ports.claim(2, owner(tmp_path, "a"))
    second = ports.claim(2, owner(tmp_path, "b"))
    assert sorted(first + second) == list(FOUR)


def test_another_process_sees_the_claims(ports: PortRegistry, tmp_path: Path) -> None:
    ports.claim(3, owner(tmp_path, "a"))
    with pytest.raises(LabError, match="No 2 free ports from 20000 to 20003"):
        PortRegistry(tmp_path / "registry", FOUR, always_free).claim(2, owner(tmp_path, "b"))


def test_a_claim_lapses_with_the_clusters_directory(ports: PortRegistry, tmp_path: Path) -> None:
    gone = owner(tmp_path, "a")
    ports.claim(4, gone)
    gone.rmdir()
    assert len(ports.claim(1, owner(tmp_path, "b"))) == 1
    assert len(list((tmp_path / "registry").glob("[0-9]*"))) == 1


def test_ports_given_back_are_free_for_others_only_then(
    ports: PortRegistry, tmp_path: Path
) -> None:
    mine, yours = owner(tmp_path, "a"), owner(tmp_path, "b")
    ports.claim(2, mine)
    theirs = ports.claim(2, yours)
    ports.release(mine)
    assert not set(ports.claim(2, mine)) & set(theirs)


def test_a_port_in_use_is_not_given(tmp_path: Path) -> None:
    ports = PortRegistry(tmp_path / "registry", FOUR, free=lambda port: port != 20001)
    assert 20001 not in ports.claim(3, owner(tmp_path, "a"))


def test_a_port_somebody_listens_on_is_not_free() -> None:
    with socket.create_server((HOST, 0)) as stranger:
        assert not is_port_free(stranger.getsockname()[1])


def test_the_range_lies_below_what_systems_use_for_outgoing_connections() -> None:
    assert 1024 < FIRST_PORT < LAST_PORT < 32768
