"""The hot modules run compiled or as pure Python, with the same results; no stale binary runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sparkmirror.compiled_modules import (
    COMPILED_MODULES,
    DIRECTORY,
    LIBRARY_NAME,
    MANIFEST_NAME,
    SWITCH,
    digest_of,
    file_of,
    is_switched_off,
    library_sizes,
    library_suffix,
    module_form,
    reason_for_pure,
)
from sparkmirror_build.compile_modules import (
    compile_if_possible,
    missing_for_compilation,
    source_files,
)

ROOT = Path(__file__).parents[3]
RESULTS = Path(__file__).parent / "compiled_module_results.py"
NEEDS_COMPILED = pytest.mark.skipif(
    bool(reason_for_pure()), reason=f"{reason_for_pure()}: make compiled"
)
FORM = "from sparkmirror.compiled_modules import module_form; print(module_form())"
FILE = "from sparkmirror.wire.batch import varint; print(varint.__file__)"


def run_python(*arguments: str, path: Path | None = None, compiled: bool = True) -> str:
    """Run Python in a directory without sources; return what it prints."""
    environment = {k: v for k, v in os.environ.items() if k not in (SWITCH, "PYTHONPATH")}
    if not compiled:
        environment[SWITCH] = "no"
    if path:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def copy_of_the_sources(directory: Path) -> Path:
    """Copy what the compiled modules import, and the compiled modules."""
    for source in [*source_files(), *packages()]:
        (directory / source.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src" / source, directory / source)
    shutil.copytree(DIRECTORY, directory / "sparkmirror" / "compiled")
    return directory


def packages() -> list[Path]:
    """Return the packages of the compiled modules, and the module that finds them."""
    packages = [Path("sparkmirror") / part / "__init__.py" for part in ("", "wire", "wire/batch")]
    return [*packages, Path("sparkmirror") / "compiled_modules.py"]


def new_manifest(directory: Path, sources: dict[str, str], suffix: str = "") -> None:
    content = {
        "suffix": suffix or library_suffix(),
        "modules": list(COMPILED_MODULES),
        "sources": sources,
        "sizes": library_sizes(directory),
    }
    (directory / MANIFEST_NAME).write_text(json.dumps(content), "utf-8")


def test_all_hot_modules_have_the_form_that_the_version_names() -> None:
    ending = library_suffix() if module_form().is_compiled else ".py"
    names = "; ".join(f"import {name}; print({name}.__file__)" for name in COMPILED_MODULES)
    files = run_python("-c", names, compiled=module_form().is_compiled).splitlines()
    assert len(files) == len(COMPILED_MODULES)
    assert [file for file in files if not file.endswith(ending)] == []
    version = run_python("-m", "sparkmirror", "--version", compiled=module_form().is_compiled)
    assert version.endswith(f"({module_form()})")


def test_the_switch_chooses_pure_python() -> None:
    assert run_python("-c", FORM, compiled=False) == f"pure Python: {SWITCH} is no"
    assert run_python("-c", FILE, compiled=False).endswith("varint.py")
    assert is_switched_off({SWITCH: "No "})
    assert not is_switched_off({SWITCH: "yes"})
    assert not is_switched_off({})


def test_a_changed_source_is_a_reason_for_pure_python(tmp_path: Path) -> None:
    assert reason_for_pure(tmp_path, tmp_path) == "the modules are not compiled"
    source = tmp_path / "hot.py"
    source.write_text("NUMBER = 1\n", "utf-8")
    new_manifest(tmp_path, {"hot.py": digest_of(source)})
    assert reason_for_pure(tmp_path, tmp_path) == ""
    source.write_text("NUMBER = 2\n", "utf-8")
    assert reason_for_pure(tmp_path, tmp_path).startswith("hot.py has changed")
    source.unlink()
    assert "cannot be read" in reason_for_pure(tmp_path, tmp_path)


def test_modules_of_another_python_are_not_used(tmp_path: Path) -> None:
    new_manifest(tmp_path, {}, suffix=".cpython-27-pdp11.so")
    assert "another Python" in reason_for_pure(tmp_path, tmp_path)


def test_the_digests_cover_the_modules_and_what_they_import() -> None:
    sources = {str(path) for path in source_files()}
    compiled = {name.replace(".", "/") + ".py" for name in COMPILED_MODULES}
    assert compiled < sources
    assert {"sparkmirror/errors.py", "sparkmirror/wire/batch/header.py"} <= sources


def test_a_computer_without_a_compiler_keeps_pure_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    assert missing_for_compilation() == "there is no C compiler (no-such-compiler)"
    assert compile_if_possible(tmp_path / "compiled") == missing_for_compilation()
    assert list(tmp_path.iterdir()) == []


@NEEDS_COMPILED
def test_an_edited_source_runs_instead_of_the_old_binary(tmp_path: Path) -> None:
    sources = copy_of_the_sources(tmp_path)
    assert run_python("-c", FILE, path=sources).endswith(library_suffix())
    edited = sources / "sparkmirror" / "wire" / "batch" / "varint.py"
    edited.write_text(edited.read_text("utf-8") + "EDITED = True\n", "utf-8")
    assert run_python("-c", FILE, path=sources) == str(edited)
    assert "varint.py has changed" in run_python("-c", FORM, path=sources)


@NEEDS_COMPILED
def test_a_library_that_cannot_be_loaded_leaves_pure_python(tmp_path: Path) -> None:
    sources = copy_of_the_sources(tmp_path)
    for library in (sources / "sparkmirror" / "compiled").rglob(f"*__mypyc{library_suffix()}"):
        library.write_bytes(bytes(library.stat().st_size))
    assert "cannot be loaded" in run_python("-c", FORM, path=sources)
    assert run_python("-c", FILE, path=sources).endswith("varint.py")


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"suffix": ".so", "modules": []}'])
def test_a_damaged_manifest_leaves_pure_python(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST_NAME).write_text(text, "utf-8")
    assert "is damaged" in reason_for_pure(tmp_path)


@pytest.mark.parametrize("name", [LIBRARY_NAME, COMPILED_MODULES[-1]])
def test_a_missing_or_cut_file_leaves_pure_python(tmp_path: Path, name: str) -> None:
    for each in (LIBRARY_NAME, *COMPILED_MODULES):
        file_of(tmp_path, each).parent.mkdir(parents=True, exist_ok=True)
        file_of(tmp_path, each).write_bytes(b"code")
    new_manifest(tmp_path, {})
    assert reason_for_pure(tmp_path) == ""
    file_of(tmp_path, name).write_bytes(b"")
    assert "missing or damaged" in reason_for_pure(tmp_path)
    file_of(tmp_path, name).unlink()
    assert "missing or damaged" in reason_for_pure(tmp_path)


@NEEDS_COMPILED
def test_both_forms_give_the_same_bytes_and_errors() -> None:
    compiled = run_python(str(RESULTS))
    assert compiled.startswith("compiled ")
    pure = run_python(str(RESULTS), compiled=False)
    assert pure.startswith("pure ")
    assert compiled.removeprefix("compiled ") == pure.removeprefix("pure ")


def wheel(directory: Path, *, compiled: bool) -> Path:
    """Build a wheel of the checkout."""
    environment = {k: v for k, v in os.environ.items() if k != SWITCH}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        env=environment if compiled else {**environment, SWITCH: "no"},
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [file] = directory.iterdir()
    return file


@NEEDS_COMPILED
def test_a_wheel_with_compiled_modules_has_the_tag_of_its_platform(tmp_path: Path) -> None:
    file = wheel(tmp_path / "wheels", compiled=True)
    assert not file.name.endswith("-any.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "installed")
        [metadata] = [name for name in archive.namelist() if name.endswith("/WHEEL")]
        assert "Root-Is-Purelib: false" in archive.read(metadata).decode()
    installed = tmp_path / "installed"
    assert file_of(installed / "sparkmirror" / "compiled", COMPILED_MODULES[0]).is_file()
    assert run_python("-c", FORM, path=installed) == "compiled"
    assert run_python("-c", FILE, path=installed).startswith(str(installed))
    assert run_python("-c", FORM, path=file) == "pure Python: the modules are not compiled"
    assert run_python("-c", FILE, path=file).endswith("varint.py")


def test_a_wheel_without_compiled_modules_is_for_any_platform(tmp_path: Path) -> None:
    file = wheel(tmp_path, compiled=False)
    assert file.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    assert "sparkmirror/wire/batch/varint.py" in names
    assert [name for name in names if "compiled/" in name or name.endswith(".so")] == []
    assert [name for name in names if name.startswith("sparkmirror_build")] == []
