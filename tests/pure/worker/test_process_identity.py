"""The client id that a restarted process shares with the process before it."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.worker.process_identity import ProcessIdentity


def test_a_restarted_process_has_the_id_of_the_one_before(tmp_path: Path) -> None:
    first = ProcessIdentity(tmp_path, "a/b")
    first.close()
    second = ProcessIdentity(tmp_path, "a/b")
    assert second.client_id == first.client_id
    assert second.client_id.startswith("sparkmirror-a/b-")
    second.close()


def test_two_processes_at_once_have_different_ids(tmp_path: Path) -> None:
    first, second = ProcessIdentity(tmp_path, "g"), ProcessIdentity(tmp_path, "g")
    assert first.client_id != second.client_id
    first.close()
    second.close()


def test_two_groups_have_different_ids(tmp_path: Path) -> None:
    first, second = ProcessIdentity(tmp_path, "g"), ProcessIdentity(tmp_path, "h")
    assert first.client_id.removeprefix("sparkmirror-g-") != second.client_id.removeprefix(
        "sparkmirror-h-"
    )
    first.close()
    second.close()


def test_a_directory_that_cannot_be_made_gives_an_id_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    identities = [ProcessIdentity(tmp_path / "file" / "below", "g") for _ in range(2)]
    assert identities[0].client_id != identities[1].client_id
