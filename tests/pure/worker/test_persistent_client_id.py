"""The client id that a restarted process shares with the process before it."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.worker.persistent_client_id import PersistentClientId


def test_a_restarted_process_has_the_id_of_the_one_before(tmp_path: Path) -> None:
    first = PersistentClientId(tmp_path, "a/b")
    first.close()
    second = PersistentClientId(tmp_path, "a/b")
    assert second.value == first.value
    assert second.value.startswith("sparkmirror-a/b-")
    second.close()


def test_two_processes_at_once_have_different_ids(tmp_path: Path) -> None:
    first, second = PersistentClientId(tmp_path, "g"), PersistentClientId(tmp_path, "g")
    assert first.value != second.value
    first.close()
    second.close()


def test_two_groups_have_different_ids(tmp_path: Path) -> None:
    first, second = PersistentClientId(tmp_path, "g"), PersistentClientId(tmp_path, "h")
    assert first.value.removeprefix("sparkmirror-g-") != second.value.removeprefix("sparkmirror-h-")
    first.close()
    second.close()


def test_a_directory_that_cannot_be_made_gives_an_id_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    identities = [PersistentClientId(tmp_path / "file" / "below", "g") for _ in range(2)]
    assert identities[0].value != identities[1].value
