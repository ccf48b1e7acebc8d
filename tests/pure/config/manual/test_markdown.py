"""docs/configuration.md is what the tables say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.config.files.deprecated_keys import IGNORED_KEYS, REMOVED_KEYS, RENAMED_KEYS
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.manual.markdown import render_manual
from sparkmirror.config.manual.sections import SECTIONS
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.checkpoint import CHECKPOINT_TASK
from sparkmirror.config.tables.client.common_client_configs import MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER
from sparkmirror.config.tables.source import SOURCE_TASK
from sparkmirror.config.tables.source_framework import SOURCE_ONLY

FILE = Path(__file__).parents[4] / "docs" / "configuration.md"


def test_the_file_is_what_the_tables_print() -> None:
    assert FILE.read_text("utf-8") == render_manual(), "the tables have changed: run `make docs`"


def test_the_manual_names_every_key() -> None:
    tables = (DEDICATED, DISTRIBUTED, SOURCE_ONLY, SOURCE_TASK, CHECKPOINT_TASK, MIRROR_CLIENT)
    own = (SOURCE_ADDITIONS, PROCESS_ADDITIONS)
    names = {name for table in (*tables, *own, CONFIG_FILTER) for name in table.names}
    old = {*RENAMED_KEYS, *REMOVED_KEYS, *IGNORED_KEYS, "rest.port", "rest.host.name"}
    printed = set(re.findall(r"^\| `([^`]+)` \|", render_manual(), re.MULTILINE))
    assert (names | ALL_CONNECTOR_NAMES | old) <= printed


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for chapter in render_manual().split("\n## "):
        rows = [line for line in chapter.splitlines() if line.startswith("| ")]
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(cells) <= 1, chapter.splitlines()[0]


def test_the_table_of_contents_links_every_chapter() -> None:
    text = render_manual()
    chapters = re.findall(r"^## (.+)$", text, re.MULTILINE)
    linked = re.findall(r"^- \[(.+)\]\(#(.+)\)$", text, re.MULTILINE)
    assert linked == [(title, title.lower().replace(" ", "-")) for title in chapters]


JOB_KEYS = re.compile(r".+\.(enabled|interval\.seconds)")
"""Keys that the code reads by the name of the job, without the ending."""
STORAGE_KEYS = re.compile(r"(config|offset|status)\.storage\.(partitions|replication\.factor)")


def key_constants() -> dict[str, str]:
    """The constants of the tables that hold a key, by the key."""
    text = "\n".join(path.read_text("utf-8") for path in (PACKAGE / "config/tables").rglob("*.py"))
    found = re.findall(r'^([A-Z_]+): Final = "([a-z.]+)"$', text, re.MULTILINE)
    return {key: constant for constant, key in found}


def is_read(key: str, sources: str, constants: Mapping[str, str]) -> bool:
    """Whether the code above `config`, or a rule of `config`, names the key or its constant."""
    return (
        f'"{key}"' in sources
        or (key in constants and re.search(rf"[(\[ ]{constants[key]}[,)\]]", sources) is not None)
        or STORAGE_KEYS.fullmatch(key) is not None
        or (JOB_KEYS.fullmatch(key) is not None and f'"{JOB_ENDING.sub("", key)}"' in sources)
    )


JOB_ENDING = re.compile(r"\.(enabled|interval\.seconds)$")
PACKAGE = Path(__file__).parents[4] / "src" / "sparkmirror"
CHECKED_ONLY = {"connector.plugin.version", "exactly.once.support"}
"""The validation of a config reads these: that is their effect."""


def test_a_key_that_no_code_reads_is_described_as_one_without_effect() -> None:
    excluded = (PACKAGE / "config/tables", PACKAGE / "config/manual", PACKAGE / "lab")
    declared = (PACKAGE / "config/definition", PACKAGE / "config/review")
    sources = "\n".join(
        path.read_text("utf-8")
        for path in PACKAGE.rglob("*.py")
        if not any(path.is_relative_to(folder) for folder in (*excluded, *declared))
    )
    keys = {key.name: key.doc for section in SECTIONS for key in section.keys}
    constants = key_constants()
    unread = {name for name in keys if not is_read(name, sources, constants)} - CHECKED_ONLY
    without_effect = {name for name, doc in keys.items() if doc.startswith("No effect here")}
    assert unread - without_effect == set()


def test_no_description_promises_what_is_not_there() -> None:
    text = "\n".join(key.doc for section in SECTIONS for key in section.keys)
    for absent in ("over HTTP", "the content of the file decides", "built-in part"):
        assert absent not in text
