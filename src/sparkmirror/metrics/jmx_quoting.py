"""Label values as JMX writes them: Kafka's Sanitizer and Java's ObjectName.

The exporters of Kafka's metrics read the names of MBeans. A name with a character that JMX does not
allow is inside double quotes there, and the dashboards for MirrorMaker 2 expect these quotes in
labels: `connector="\\"A->B.MirrorSourceConnector\\""`.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[\w\-%. \t]*", re.ASCII)
_ESCAPED = re.compile(r'["*?\\]')


def jmx_sanitize(value: str) -> str:
    """Return the value as the name of an MBean has it: quoted if a character needs that."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = _ESCAPED.sub(lambda found: "\\" + found[0], value).replace("\n", "\\n")
    return f'"{escaped}"'
