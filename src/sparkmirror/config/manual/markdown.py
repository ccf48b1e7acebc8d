"""The configuration manual, printed from the tables.

`python -m sparkmirror.config.manual.markdown` writes it to standard output; `make docs` keeps it in
docs/configuration.md. The texts are in the tables and in `sections`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from sparkmirror.config.definition.config_def import ConfigKey
from sparkmirror.config.definition.plugin_versions import (
    AvailableVersionValidator,
    PluginVersionValidator,
)
from sparkmirror.config.files.deprecated_keys import IGNORED_KEYS, REMOVED_KEYS, RENAMED_KEYS
from sparkmirror.config.manual.sections import (
    DEPRECATED_KEYS,
    DEPRECATED_KEYS_TITLE,
    INTRODUCTION,
    PLUGIN_SECTIONS,
    SECTIONS,
    ManualSection,
    PluginSection,
)

_COLUMNS: Final = ("key", "type", "default", "importance", "valid values", "description")


def render_manual() -> str:
    """Print the whole manual."""
    titles = [section.title for section in (*SECTIONS, *PLUGIN_SECTIONS)]
    parts = [
        INTRODUCTION,
        *(f"- [{title}]({_anchor(title)})" for title in [*titles, DEPRECATED_KEYS_TITLE]),
        "",
        *map(_section, SECTIONS),
        *map(_plugin_section, PLUGIN_SECTIONS),
        _deprecated_keys(),
    ]
    return "\n".join(parts)


def _section(section: ManualSection) -> str:
    rows = [_cells(key) for key in section.keys]
    return _section_markdown(section.title, section.text, _COLUMNS, rows)


def _plugin_section(section: PluginSection) -> str:
    """Print one table for all plug-ins, because each has few keys, and many have the same."""
    rows = []
    for config_def in dict.fromkeys(section.config_defs.values()):
        names = [name for name, other in section.config_defs.items() if other == config_def]
        classes = ", ".join(f"`{name.rpartition('.')[2]}`" for name in names)
        rows += [(classes, *_cells(key)) for key in config_def]
        if not config_def.names:
            rows.append((classes, *["–"] * len(_COLUMNS)))
    return _section_markdown(section.title, section.text, ("class", *_COLUMNS), rows)


def _deprecated_keys() -> str:
    rows = [
        *((f"`{old}`", f"read as `{new}`") for old, new in RENAMED_KEYS.items()),
        ("`rest.port`", "read as `listeners=http://:<port>`"),
        ("`rest.host.name`", "read as `listeners=http://<host>:8083`, or with `rest.port`"),
        *((f"`{old}`", f"ignored: {why}") for old, why in (REMOVED_KEYS | IGNORED_KEYS).items()),
    ]
    return _section_markdown(DEPRECATED_KEYS_TITLE, DEPRECATED_KEYS, ("key", "effect"), rows)


def _section_markdown(
    title: str, text: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {title}\n\n{text}\n\n{table}\n"


def _cells(key: ConfigKey) -> tuple[str, ...]:
    return (
        f"`{key.name}`",
        key.type.value.lower(),
        _default(key),
        key.importance.value.lower(),
        _escape(_valid_values(key)),
        _escape(key.doc),
    )


def _default(key: ConfigKey) -> str:
    if key.required:
        return "**required**"
    text = key.default_text
    if text is None:
        return "none"
    return f"`{text}`" if text else "empty"


def _valid_values(key: ConfigKey) -> str:
    if isinstance(key.validator, PluginVersionValidator | AvailableVersionValidator):
        return "a version, or a range like [4.0,5.0)"
    text = key.validator.description if key.validator else ""
    return text.replace("<code>", "").replace("</code>", "")


def _escape(text: str) -> str:
    """Escape the characters that have a meaning in Markdown."""
    for char in "\\|<*":
        text = text.replace(char, f"\\{char}")
    return text


def _anchor(title: str) -> str:
    return f"#{title.lower().replace(' ', '-')}"


if __name__ == "__main__":
    sys.stdout.write(render_manual())
