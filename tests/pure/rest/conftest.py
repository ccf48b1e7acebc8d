"""One server with the usual settings for all tests of the REST room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rest.rest_client import RestClient, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder


@pytest.fixture(scope="session")
def herding() -> ScriptedHerder:
    """The worker behind the server."""
    return ScriptedHerder()


@pytest.fixture(scope="session")
def address(herding: ScriptedHerder) -> Iterator[str]:
    """Where it is served."""
    with running_rest_server(herding) as server:
        yield server.address


@pytest.fixture
def client(address: str) -> Iterator[RestClient]:
    """A caller with a connection of its own."""
    caller = RestClient(address)
    yield caller
    caller.close()
