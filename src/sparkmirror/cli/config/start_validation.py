"""The validation of a file before a start. A start refuses what `config validate` refuses.

The functions here print the table of `config validate` on standard error and raise ConfigError if
the file has a fault. They connect to nothing and write nothing. Notices do not refuse a start.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.config.files.mirror_maker_config import CLUSTERS
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.files.worker_file import is_worker_file
from sparkmirror.config.review.file_validation import validate_dedicated_file, validate_worker_file
from sparkmirror.config.review.findings import ValidationReport
from sparkmirror.config.warn_once import unrecorded_warnings
from sparkmirror.errors import ConfigError


def require_valid_dedicated_file(
    file: Properties, targets: Collection[str], environment: Mapping[str, str]
) -> None:
    """Raise ConfigError if the flows of the file into these clusters cannot be started."""
    with without_log_lines():
        report = validate_dedicated_file(
            file, environment, worker_start_checks(environment), targets
        )
    if is_worker_file(file):
        advice = f"this is a worker's file: start it with sparkmirror worker {file.file}"
    else:
        only = f" --clusters {','.join(targets)}" if targets else ""
        advice = _advice(f"sparkmirror config validate {file.file}{only}")
    _require_no_faults(file, report, advice)


def require_valid_worker_file(file: Properties, environment: Mapping[str, str]) -> None:
    """Raise ConfigError if a worker cannot be started with the file."""
    with without_log_lines():
        report = validate_worker_file(file, environment, worker_start_checks(environment))
    if CLUSTERS in file.mapping:
        advice = f"the file has clusters and flows: start it with sparkmirror run {file.file}"
    else:
        advice = _advice(f"sparkmirror config validate {file.file}")
    _require_no_faults(file, report, advice)


def require_valid_client_files(flow: Properties, environment: Mapping[str, str]) -> None:
    """Raise ConfigError if the flow that two client files of MirrorMaker 1 became cannot start."""
    with without_log_lines():
        report = validate_dedicated_file(flow, environment, worker_start_checks(environment))
    without_lines = replace(
        report,
        errors=tuple(replace(error, line=None) for error in report.errors),
        notices=tuple(replace(notice, line=None) for notice in report.notices),
    )
    advice = (
        "keys that begin with source. come from the consumer's file, those with target. from the"
        " producer's; correct these files, or the options, then start again"
    )
    _require_no_faults(flow, without_lines, advice)


def split_aliases(text: str) -> list[str]:
    """The cluster aliases of a `--clusters` option."""
    return [alias.strip() for alias in text.split(",") if alias.strip()]


@contextmanager
def without_log_lines() -> Iterator[None]:
    """Drop the log lines inside the block. The findings of a validation contain the same facts.

    A warning that is logged once only is logged after the block, when the start finds it again.
    """
    handler = logging.NullHandler()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with unrecorded_warnings():
            yield
    finally:
        root.removeHandler(handler)


def _advice(command: str) -> str:
    return f"correct the lines above, check the file with {command}, then start again"


def _require_no_faults(file: Properties, report: ValidationReport, advice: str) -> None:
    if report.errors:
        # Imported here because tables are slow to import, and nearly every start has no fault.
        from sparkmirror.cli.config import text_output

        console = text_output.new_console(stderr=True)
        text_output.show_validation_report(console, file.file, report)
        raise ConfigError.of("", f"nothing was started; {advice}", where=file.file)
