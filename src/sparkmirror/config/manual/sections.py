"""The texts of the configuration manual around the tables, and the order of the tables.

A text about a single key belongs in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definition.config_def import ConfigDef, ConfigKey
from sparkmirror.config.definition.java_classes import CONVERTERS
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.checkpoint import CHECKPOINT, CHECKPOINT_TASK
from sparkmirror.config.tables.client.common_client_configs import CLIENT
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.mirror_connector import MIRROR
from sparkmirror.config.tables.plugins.converters import CONVERTER_TABLES
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER
from sparkmirror.config.tables.plugins.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES
from sparkmirror.config.tables.source import SOURCE, SOURCE_TASK
from sparkmirror.config.tables.source_framework import SOURCE_ONLY

INTRODUCTION: Final = """\
# Configuration

Every key that sparkmirror accepts. Names, types, defaults and valid values are those of Apache
Kafka 4.3, so that files and scripts of MirrorMaker 2 keep working. A description that begins with
*No effect here* means: the value is checked, and nothing reads it. sparkmirror's own keys begin
with `sparkmirror.` or `spark.`. What differs from Kafka is in [compatibility](compatibility.md).
This page is printed from the tables in `src/sparkmirror/config/tables`; after a change there run
`make docs`.

`sparkmirror config validate FILE` checks a file or a connector's JSON before the start, and
`sparkmirror config explain FILE KEY` tells which line sets a key.

The prefix of a key in a dedicated file (`mm2.properties`):

| written as | applies to |
|---|---|
| `<key>` | all flows and clusters: the keys of the first section, the keys of the connectors, \
and the security keys as a fallback for every cluster; any other key is ignored |
| `<cluster>.<key>` | one cluster: how to reach it, and the worker of every flow *into* it; with \
`producer.`, `consumer.` or `admin.` in front of the key, one type of client only |
| `<source>-><target>.<key>` | one flow: the keys of its three connectors |

The more special wins over the more general, with one exception, as in MirrorMaker 2: a key that
begins with `offset.storage`, `config.storage`, `status.storage`, `key.converter`,
`value.converter`, `header.converter`, `task`, `worker` or `replication.policy` and has no prefix
reaches every worker, and wins there.

A connector's config (REST) has keys without such a prefix. `source.cluster.` and `target.cluster.`
set how to reach the two clusters; `source.consumer.`, `target.producer.` and so on set it for one
type of client. `producer.override.` changes the worker's own producer for one connector.

Values are trimmed. A list is separated by commas; a repeated item counts once, an empty item is an
error. A class is the name of a Java class that is built in here, in full or in short
(`ByteArrayConverter`, `ByteArray`). A config provider replaces `${provider:path:key}`.
"""

DEPRECATED_KEYS_TITLE: Final = "Retired keys"
DEPRECATED_KEYS: Final = (
    "Keys of older Kafka releases are read as their successors. Keys for a JVM are ignored. Each "
    "gets one warning, which names what to write instead."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualSection:
    """One table under its title, without the keys of the `excluded` tables."""

    title: str
    text: str
    config_def: ConfigDef
    excluded: tuple[ConfigDef, ...] = ()

    @property
    def keys(self) -> list[ConfigKey]:
        """The rows to print."""
        return [
            key for key in self.config_def if not any(key.name in other for other in self.excluded)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSection:
    """The tables of all plug-ins of one type, by class name."""

    title: str
    text: str
    config_defs: Mapping[str, ConfigDef]


SECTIONS: Final = (
    ManualSection(
        title="A dedicated file",
        text="What `mm2.properties` itself declares.",
        config_def=DEDICATED,
        excluded=(CLIENT,),
    ),
    ManualSection(
        title="Reaching a cluster",
        text="How any client connects to the brokers and logs in. Written per cluster: "
        "`<cluster>.<key>` in a dedicated file, `source.cluster.<key>` and `target.cluster.<key>` "
        "in a connector's config, without a prefix for a worker.",
        config_def=CLIENT,
    ),
    ManualSection(
        title="Every connector of a mirror",
        text="What source, checkpoint and heartbeat connector have in common.",
        config_def=MIRROR,
        excluded=(CONNECTOR, CLIENT),
    ),
    ManualSection(
        title="Source connector",
        text="`MirrorSourceConnector` copies records, creates remote topics and keeps their "
        "configs and ACLs like the source's.",
        config_def=SOURCE,
        excluded=(MIRROR,),
    ),
    ManualSection(
        title="Default filter of topic configs",
        text="Read by `DefaultConfigPropertyFilter` in addition to `config.properties.exclude`. "
        "In a dedicated file write it per flow.",
        config_def=CONFIG_FILTER,
        excluded=(SOURCE,),
    ),
    ManualSection(
        title="Checkpoint connector",
        text="`MirrorCheckpointConnector` translates the offsets of consumer groups. Its topic "
        "filter also reads `topics` and `topics.exclude`.",
        config_def=CHECKPOINT,
        excluded=(MIRROR,),
    ),
    ManualSection(
        title="Heartbeat connector",
        text="`MirrorHeartbeatConnector` writes heartbeats, which show that a flow runs.",
        config_def=HEARTBEAT,
        excluded=(MIRROR,),
    ),
    ManualSection(
        title="Every connector",
        text="The keys that Kafka Connect reads for any connector.",
        config_def=CONNECTOR,
    ),
    ManualSection(
        title="Every connector that writes to Kafka",
        text="The keys that Kafka Connect reads for source connectors; all three of a mirror are.",
        config_def=SOURCE_ONLY,
    ),
    ManualSection(
        title="Worker",
        text="What a Connect worker reads (`connect-distributed.properties`), besides how to "
        "reach its cluster. In a dedicated file: `<target>.<key>`, for all flows into that "
        "cluster.",
        config_def=DISTRIBUTED,
        excluded=(CLIENT,),
    ),
    ManualSection(
        title="Our own keys of a source connector",
        text="Kafka does not have these; a Java worker that takes over ignores them. In a "
        "dedicated file `<source>-><target>.<key>`, or `<key>` for all flows; over REST as they "
        "are. The answers of the REST API list one only if its value is wrong. A wrong value in a "
        "dedicated file is a fault, and the start refuses the file.",
        config_def=SOURCE_ADDITIONS,
    ),
    ManualSection(
        title="Our own keys of a process",
        text="Read from a worker's file, or from a dedicated file without a prefix, for all its "
        "flows. Besides these, every key that begins with `spark.` goes to Spark as it is, for "
        "example `spark.master` (see [Spark clusters](spark.md)), unless a cluster of the file is "
        "called spark.",
        config_def=PROCESS_ADDITIONS,
    ),
    ManualSection(
        title="Tasks",
        text="Written by the connectors for their tasks, and visible over REST. Nothing to set.",
        config_def=SOURCE_TASK.updated(CHECKPOINT_TASK),
        excluded=(SOURCE, CHECKPOINT),
    ),
)

PLUGIN_SECTIONS: Final = (
    PluginSection(
        title="Transformations",
        text="Applied to the records of a source connector, see [Transforms](transforms.md). "
        "Written with `transforms.<alias>.` in front, after `transforms.<alias>.type`; each also "
        "has `predicate` and `negate`.",
        config_defs=TRANSFORMATION_TABLES,
    ),
    PluginSection(
        title="Predicates",
        text="Written with `predicates.<alias>.` in front, after `predicates.<alias>.type`.",
        config_defs=PREDICATE_TABLES,
    ),
    PluginSection(
        title="Converters",
        text="A catalogue only, without effect here: records are copied as bytes, and our own "
        "`sparkmirror.transform.value.format` says how transformations read them. Written with "
        "`key.converter.`, `value.converter.` or `header.converter.` in front.",
        config_defs={name: CONVERTER_TABLES[name] for name in CONVERTERS},
    ),
)
