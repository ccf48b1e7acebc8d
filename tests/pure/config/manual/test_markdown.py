"""docs/configuration.md is what the tables say."""

from __future__ import annotations

import re
from pathlib import Path

from sparkmirror.config.files.deprecated_keys import IGNORED_KEYS, REMOVED_KEYS, RENAMED_KEYS
from sparkmirror.config.files.flow_rules import ALL_CONNECTOR_NAMES
from sparkmirror.config.manual.markdown import render_manual
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.checkpoint import CHECKPOINT_TASK
from sparkmirror.config.tables.clients import MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.filters import CONFIG_FILTER
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


def test_the_table_of_contents_leads_to_every_chapter() -> None:
    text = render_manual()
    chapters = re.findall(r"^## (.+)$", text, re.MULTILINE)
    linked = re.findall(r"^- \[(.+)\]\(#(.+)\)$", text, re.MULTILINE)
    assert linked == [(title, title.lower().replace(" ", "-")) for title in chapters]
