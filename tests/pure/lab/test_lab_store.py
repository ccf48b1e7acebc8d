"""Records of labs: written, read, private, removed after a reboot."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sparkmirror.errors import BadRequest, LabError
from sparkmirror.lab.detached_lab import remove_stale_lab
from sparkmirror.lab.lab_store import LabRecord, LabStore, labs_directory

_CLUSTERS = ({"spec": {"name": "primary"}, "nodes": [{"id": 1}]},)


@pytest.fixture
def store(tmp_path: Path) -> LabStore:
    return LabStore(tmp_path / "labs")


def test_lab_is_read_as_written(store: LabStore) -> None:
    record = LabRecord(name="one", clusters=_CLUSTERS)
    store.write(record)
    assert store.read("one") == record
    assert store.names() == ["one"]


def test_unknown_lab_is_read_as_none(store: LabStore) -> None:
    assert store.read("one") is None
    assert store.names() == []


def test_only_the_owner_may_read_a_lab(store: LabStore) -> None:
    store.write(LabRecord(name="one", clusters=_CLUSTERS))
    directory = store.directory("one")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "lab.json").stat().st_mode) == 0o600
    assert [file.name for file in directory.iterdir()] == ["lab.json"]


def test_repr_of_a_record_contains_no_password() -> None:
    record = LabRecord(name="one", clusters=({"control_password": "s3cret"},))
    assert "s3cret" not in repr(record)


def test_removed_lab_leaves_no_files(store: LabStore) -> None:
    store.write(LabRecord(name="one", clusters=_CLUSTERS))
    (store.directory("one") / "primary").mkdir()
    store.remove("one")
    assert not store.directory("one").exists()


@pytest.mark.parametrize("text", ["", "{}", '{"boot": "", "clusters": 1}'], ids=["", "half", "int"])
def test_error_names_a_malformed_file(store: LabStore, text: str) -> None:
    store.write(LabRecord(name="one", clusters=_CLUSTERS))
    file = store.directory("one") / "lab.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=f"^{file} makes no sense"):
        store.read("one")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".lock-x", "-f", "a b"])
def test_name_that_is_a_path_is_rejected(store: LabStore, name: str) -> None:
    with pytest.raises(BadRequest, match="is no name for a lab"):
        store.directory(name)


def test_lab_of_this_boot_is_kept(store: LabStore) -> None:
    store.write(LabRecord(name="one", clusters=_CLUSTERS))
    assert not remove_stale_lab(store, "one")
    assert store.names() == ["one"]


def test_lab_of_another_boot_is_removed(store: LabStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkmirror.lab.lab_store.current_boot_id", lambda: "this boot")
    store.write(LabRecord(name="one", clusters=_CLUSTERS, boot_id="long ago"))
    assert remove_stale_lab(store, "one")
    assert not store.directory("one").exists()
    assert not remove_stale_lab(store, "one")


def test_lab_whose_boot_is_unknown_is_kept(store: LabStore) -> None:
    store.write(LabRecord(name="one", clusters=_CLUSTERS, boot_id=""))
    assert not remove_stale_lab(store, "one")


def test_environment_names_the_labs_directory() -> None:
    assert labs_directory({"SPARKMIRROR_LABS": "/a", "XDG_STATE_HOME": "/b"}) == Path("/a")
    assert labs_directory({"XDG_STATE_HOME": "/b"}) == Path("/b/sparkmirror/labs")
    assert labs_directory({}) == Path.home() / ".local/state/sparkmirror/labs"
