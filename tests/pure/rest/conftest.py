"""One server with the usual settings for all tests of the REST room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rest_client import Client, served
from tests.support.scripted_herding import ScriptedHerding


@pytest.fixture(scope="session")
def herding() -> ScriptedHerding:
    """The worker behind the server."""
    return ScriptedHerding()


@pytest.fixture(scope="session")
def address(herding: ScriptedHerding) -> Iterator[str]:
    """Where it is served."""
    with served(herding) as server:
        yield server.address


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    """A caller with a connection of its own."""
    caller = Client(address)
    yield caller
    caller.close()
