"""What a connector does about records that fail, from its config."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.transforms.configuration.error_settings import ErrorSettings, FailedRecordsTopic

QUEUE = "sparkmirror.errors.deadletterqueue"


def test_by_default_nothing_is_logged_and_there_is_no_topic() -> None:
    assert ErrorSettings.from_config({}) == ErrorSettings()


def test_all_keys_are_read() -> None:
    props = {
        "errors.log.enable": "true",
        "errors.log.include.messages": " TRUE ",
        f"{QUEUE}.topic.name": " dead ",
        f"{QUEUE}.topic.replication.factor": "2",
        f"{QUEUE}.context.headers.enable": "true",
    }
    assert ErrorSettings.from_config(props) == ErrorSettings(
        logs_errors=True,
        logs_records=True,
        topic=FailedRecordsTopic(name="dead", replication_factor=2, has_context_headers=True),
    )


@pytest.mark.parametrize(
    "props",
    [{"errors.log.enable": "maybe"}, {f"{QUEUE}.topic.replication.factor": "0"}],
)
def test_wrong_values_are_faults(props: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        ErrorSettings.from_config(props)
