"""A task leaves its client to the next task with the same options, unless it fails."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sparkmirror.datasource.client_pool import ClientPool


@dataclass(eq=False)
class CountedClient:
    """A client that knows whether it is closed."""

    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True


def lend_once(pool: ClientPool[CountedClient], identity: str) -> CountedClient:
    with pool.lend(identity, CountedClient) as client:
        assert not client.is_closed
        return client


def test_the_next_task_with_the_same_options_gets_the_client() -> None:
    pool = ClientPool[CountedClient]()
    first = lend_once(pool, "a")
    assert lend_once(pool, "b") is not first
    assert lend_once(pool, "a") is first
    pool.close()
    assert first.is_closed
    assert lend_once(pool, "a") is not first


def test_two_tasks_at_a_time_have_two_clients() -> None:
    pool = ClientPool[CountedClient]()
    with pool.lend("a", CountedClient) as first, pool.lend("a", CountedClient) as second:
        assert first is not second


def test_the_client_of_a_task_that_fails_is_closed_and_not_used_again() -> None:
    """A task that is cancelled raises GeneratorExit in a reader."""
    pool = ClientPool[CountedClient]()
    clients = []
    for error in (ValueError(), GeneratorExit()):
        with pytest.raises(type(error)), pool.lend("a", CountedClient) as client:
            clients.append(client)
            raise error
    assert [client.is_closed for client in clients] == [True, True]
    assert lend_once(pool, "a") not in clients


def test_a_client_that_waited_for_too_long_is_closed() -> None:
    now = 0.0
    pool = ClientPool[CountedClient](idle_s=10, clock=lambda: now)
    first = lend_once(pool, "a")
    now = 9.0
    assert lend_once(pool, "a") is first
    now = 19.0
    assert lend_once(pool, "b") is not first
    assert first.is_closed
