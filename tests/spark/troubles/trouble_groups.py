"""Which troubles are provoked at the same time: those that leave each other's connectors alone.

All rows of a group have the same `/health`, except one that has a worker of its own. A worker of a
group has at most MAX_CAUSES of them: `sparkmirror status` counts further causes and does not name
them.
"""

from __future__ import annotations

from tests.spark.troubles.right_provocations import SYNC_ACLS, SYNC_CONFIGS

TROUBLE_GROUPS: dict[str, tuple[str, ...]] = {
    "unreachable-clusters": (
        "java-worker",
        "source-down-at-start",
        "target-down-at-start",
        "unknown-host",
        "http-port",
        "wrong-password",
    ),
    "connectors-without-spark": (
        "expired-certificate",
        "no-matching-topic",
        "no-write-to-heartbeats",
        "no-describe-on-source-group",
        "no-read-on-target-group",
    ),
    "topics": (
        "truncated",
        "recreated",
        "overtaken-by-retention",
        "record-too-large",
        "no-write-to-checkpoints",
    ),
    "rights-on-copied-topics": (
        "no-read-at-source",
        "no-describe-at-source",
        "no-write-at-target",
        "no-create-at-target",
    ),
    "rights-to-sync": (
        "no-read-on-worker-group",
        "no-write-to-offset-syncs",
        "no-describe-configs",
        "no-alter-configs",
        "no-describe-on-cluster",
    ),
    "connect-topics": (
        "no-alter-on-cluster",
        "config-topic-corrupt",
        "no-write-to-offsets",
        "no-write-to-configs",
    ),
    "status-topic": ("no-write-to-statuses",),
    "foreign-writer": ("foreign-writer",),
    "no-right-to-fence": ("no-right-to-fence",),
    "source-down": ("source-down-loaded", "source-down-idle"),
    "target-down": ("target-down-loaded", "target-down-idle"),
    "both-down": ("both-down",),
    "one-broker-down": ("one-broker-down",),
    "source-suspended": ("source-suspended",),
    "target-suspended": ("target-suspended",),
    "driver-suspended": ("driver-suspended",),
    "driver-killed": ("driver-killed",),
    "jvm-killed": ("jvm-killed",),
}
"""The rows of a group are provoked in this order, and they end in the reverse order."""

SOAK_GROUPS = ("both-down", "source-suspended", "jvm-killed")
"""Groups that `make soak` provokes: others of their kind are provoked by `make test`."""

OWN_CONNECTORS: dict[str, dict[str, str]] = {
    "truncated": {},
    "no-read-at-source": {},
    "no-describe-at-source": {},
    "no-write-at-target": {},
    "no-create-at-target": {},
    # Another alias of the target: the offset syncs topic of the other connectors is another one.
    "no-write-to-offset-syncs": {"target.cluster.alias": "south"},
    "no-describe-configs": SYNC_CONFIGS,
    "no-alter-configs": SYNC_CONFIGS,
    "no-describe-on-cluster": SYNC_ACLS,
    "no-alter-on-cluster": SYNC_ACLS,
    "no-write-to-configs": {},
    "recreated": {},
    "overtaken-by-retention": {},
    "record-too-large": {},
}
"""Rows that have a source connector of their own, and what its config has more than MAIN's."""
