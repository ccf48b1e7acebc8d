"""The file that the demo gives to `sparkmirror run`."""

from __future__ import annotations

from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.cli.demo.command import BACKUP_TOPICS, MM2_PROPERTIES, PRIMARY_TOPICS
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.review.file_validation import validate_file
from sparkmirror.model import SourceAndTarget
from tests.support.connect.replication_rules import topic_filter_of

TEXT = MM2_PROPERTIES.format(
    primary="127.0.0.1:9092", backup="127.0.0.1:9093", listener="http://127.0.0.1:8083"
)
FILE = parse_properties(TEXT.encode(), file="mm2.properties")
FLOWS = {
    SourceAndTarget("primary", "backup"): PRIMARY_TOPICS,
    SourceAndTarget("backup", "primary"): BACKUP_TOPICS,
}


def test_the_file_has_no_fault_and_no_notice() -> None:
    review = validate_file(FILE, {}, worker_start_checks({}))
    assert (review.errors, review.notices) == ((), ())


def test_every_topic_of_the_demo_is_mirrored_and_groups_are_synced() -> None:
    config = MirrorMakerConfig.open(FILE, {})
    assert set(config.flows()) == set(FLOWS)
    for flow, topics in FLOWS.items():
        written = config.layered_connector_config(flow, MirrorConnector.SOURCE).props
        chosen = topic_filter_of(written)
        assert [topic for topic in topics if not chosen.should_replicate_topic(topic)] == []
        synced = config.layered_connector_config(flow, MirrorConnector.CHECKPOINT).props
        assert synced["sync.group.offsets.enabled"] == "true"
