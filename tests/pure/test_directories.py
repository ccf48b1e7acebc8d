"""Where this user's things are kept follows from the environment."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.directories import cache_directory, state_directory


def test_the_cache_is_where_the_user_says() -> None:
    assert cache_directory({"SPARKMIRROR_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_directory({"XDG_CACHE_HOME": "/b"}) == Path("/b/sparkmirror")
    assert cache_directory({}) == Path.home() / ".cache" / "sparkmirror"


def test_state_is_where_the_user_says() -> None:
    assert state_directory({"XDG_STATE_HOME": "/b"}) == Path("/b/sparkmirror")
    assert state_directory({}) == Path.home() / ".local" / "state" / "sparkmirror"
