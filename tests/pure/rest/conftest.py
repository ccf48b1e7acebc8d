"""One server with default settings for all tests of `rest`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rest.rest_client import RestClient, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder


@pytest.fixture(scope="session")
def herder() -> ScriptedHerder:
    """The herder behind the server."""
    return ScriptedHerder()


@pytest.fixture(scope="session")
def address(herder: ScriptedHerder) -> Iterator[str]:
    """The URL of the server."""
    with running_rest_server(herder) as server:
        yield server.address


@pytest.fixture
def client(address: str) -> Iterator[RestClient]:
    """A client with its own connection."""
    rest_client = RestClient(address)
    yield rest_client
    rest_client.close()
