"""The rows of the table of troubles about missing rights beside those on the copied topics."""

from __future__ import annotations

from tests.spark.troubles.trouble import FAILED, UNHEALTHY, Trouble

GRANT = "Grant the right that the remark names; nothing else is needed."
GOES_ON = f"{GRANT} Copying goes on."

INTERNAL_TOPIC_RIGHTS = (
    Trouble(
        name="no-write-to-offset-syncs",
        title="The right Write on the offset syncs topic is missing",
        remark="offset syncs cannot be written to …: …; grant Write on the topic",
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=5,
        disappears_within_s=8,
        advice=GOES_ON,
    ),
    Trouble(
        name="no-write-to-offsets",
        title="The right Write on Connect's offsets topic is missing",
        remark="the driver cannot grant leases or write positions: …; grant Write on the topic",
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=5,
        disappears_within_s=5,
        advice=GOES_ON,
    ),
    Trouble(
        name="no-write-to-statuses",
        title="The right Write on Connect's status topic is missing",
        remark="Produce answered …; grant Write on the topic",
        task="",
        on_task=False,
        partition="",
        health=UNHEALTHY,
        log="Status updates cannot be written to topic …; grant Write on the topic",
        appears_within_s=3,
        disappears_within_s=8,
        advice=GOES_ON,
    ),
    Trouble(
        name="no-write-to-configs",
        title="The right Write on Connect's config topic is missing, and tasks change",
        remark="Produce answered …; grant Write on the topic",
        on_connector=True,
        on_task=False,
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=10,
        disappears_within_s=60,
        advice=f"{GRANT} The tasks go on as they were; new topics wait.",
    ),
    Trouble(
        name="no-write-to-checkpoints",
        title="The right Write on the checkpoints topic is missing",
        remark="Produce answered …: east.checkpoints.internal-0; grant Write on the topic",
        partition="",
        appears_within_s=8,
        disappears_within_s=30,
        advice=GRANT,
    ),
    Trouble(
        name="no-write-to-heartbeats",
        title="The right Write on the heartbeats topic is missing",
        remark="Produce answered …: heartbeats-0; grant Write on the topic",
        partition="",
        appears_within_s=5,
        disappears_within_s=30,
        advice=GRANT,
    ),
)

GROUP_RIGHTS = (
    Trouble(
        name="no-describe-on-source-group",
        title="The right Describe on a group of the source is missing",
        remark="offsets of groups cannot be read: …; grant Describe on the group",
        partition="",
        appears_within_s=5,
        disappears_within_s=10,
        advice=GRANT,
    ),
    Trouble(
        name="no-read-on-target-group",
        title="The right Read on a group of the target is missing, and its offsets are synced",
        remark="offsets of groups cannot be synced: …; grant Read on the group",
        partition="",
        appears_within_s=8,
        disappears_within_s=15,
        advice=GRANT,
    ),
    Trouble(
        name="no-read-on-worker-group",
        title="The right Read on the worker's group `group.id` is missing",
        remark="a second worker of group … would not be noticed: …; grant Read on the group",
        on_task=False,
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=5,
        disappears_within_s=8,
        advice=f"{GOES_ON} Until then do not start a second worker.",
    ),
)

SYNC_RIGHTS = (
    Trouble(
        name="no-describe-configs",
        title="The right DescribeConfigs on a source topic is missing",
        remark="configs cannot be read: …; grant DescribeConfigs on the topic",
        on_connector=True,
        on_task=False,
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=8,
        disappears_within_s=30,
        advice=GOES_ON,
    ),
    Trouble(
        name="no-alter-configs",
        title="The right AlterConfigs on a remote topic is missing",
        remark="configs cannot be altered: …; grant AlterConfigs on the topic",
        on_connector=True,
        on_task=False,
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=8,
        disappears_within_s=30,
        advice=GOES_ON,
    ),
    Trouble(
        name="no-describe-on-cluster",
        title="The right Describe on the source cluster is missing, and ACLs are synced",
        remark="syncing topic ACLs: …; grant Describe on the cluster",
        on_connector=True,
        on_task=False,
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=8,
        disappears_within_s=30,
        advice=f"{GOES_ON} Or set `sync.topic.acls.enabled=false`.",
    ),
    Trouble(
        name="no-alter-on-cluster",
        title="The right Alter on the target cluster is missing, and an ACL is to be created",
        remark="ACLs cannot be created: …; grant Alter on the cluster",
        on_connector=True,
        on_task=False,
        on_partition=False,
        partition="leased",
        knows_lag=True,
        appears_within_s=8,
        disappears_within_s=30,
        advice=f"{GOES_ON} Or set `sync.topic.acls.enabled=false`.",
    ),
)

EXACTLY_ONCE_RIGHTS = (
    Trouble(
        name="no-transactional-id",
        title="With exactly-once, the right Write on transactional ids is missing",
        remark="FindCoordinator answered …; grant Describe on the transactional id",
        task=FAILED,
        partition="held",
        appears_within_s=30,
        disappears_within_s=30,
        advice="Grant Write and Describe on the transactional ids `<group.id>-<connector>-…`, then"
        " `POST …/restart?includeTasks=true`.",
        proof="tests/brokers/copy/test_held_partitions.py"
        "::test_exactly_once_without_the_right_to_transactional_ids_does_not_start",
    ),
)

RIGHT_TROUBLES = (*INTERNAL_TOPIC_RIGHTS, *GROUP_RIGHTS, *SYNC_RIGHTS, *EXACTLY_ONCE_RIGHTS)
