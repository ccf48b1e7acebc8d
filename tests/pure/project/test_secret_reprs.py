"""No repr of a dataclass shows a config, a header or a secret: a log line or a trace could."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import sparkmirror

SUSPICIOUS_TYPES = re.compile(
    r"Mapping\[str, (str|Any|ParsedValue)|dict\[str, (str|Any)|RawConfig|Props"
)
SUSPICIOUS_NAMES = re.compile(r"password|secret|token|passphrase|private_key|credential")
HIDDEN_TYPES = re.compile(
    r"Password|BearerTokens?|TokenSource|RetrievedToken|AwsCredentialSettings"
)
"""Types whose own repr has no secret."""
WITHOUT_SECRETS = {
    *(
        "remote_topics",
        "policy_topics",
        "topic_ids",
        "configs",
        "partition",
        "offset",
        "disabled_by",
    ),
    "target_limits",
    *("extra_configs", "path_parameters", "executor_variables", "extensions", "certificate"),
    *("private_key_file", "refresh_token_file", "is_delegation_token", "_tokens", "token_url"),
    "labels",
}
"""Names of fields that hold topics, offsets, limits, names of files and the like."""
WITH_SPARK_OR_LAB = (
    "sparkmirror.engine.spark",
    "sparkmirror.datasource.kafka",
    "sparkmirror.lab",
)
PROCESSES_OF_THEIR_OWN = ("__main__", "reaper_process", "noop_driver_main")


def dataclasses_of_the_package() -> Iterator[type]:
    for found in pkgutil.walk_packages(sparkmirror.__path__, "sparkmirror."):
        if found.name.rpartition(".")[2] in PROCESSES_OF_THEIR_OWN:
            continue
        if found.name.startswith(WITH_SPARK_OR_LAB):
            continue  # Spark need not be installed; the lab has no secrets of others
        module = importlib.import_module(found.name)
        yield from (
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and value.__module__ == found.name
            and dataclasses.is_dataclass(value)
        )


def test_no_repr_shows_a_config_a_header_or_a_secret() -> None:
    shown, checked = [], 0
    for kind in dataclasses_of_the_package():
        checked += 1
        if not inspect.getattr_static(kind, "__dataclass_params__").repr:
            continue
        for field in dataclasses.fields(kind):
            annotation = str(field.type)
            if not field.repr or field.name in WITHOUT_SECRETS or "Callable" in annotation:
                continue
            if HIDDEN_TYPES.search(annotation):
                continue
            if SUSPICIOUS_TYPES.search(annotation) or SUSPICIOUS_NAMES.search(field.name):
                shown.append(f"{kind.__module__}.{kind.__name__}.{field.name}")
    assert checked > 200
    assert shown == [], "use Password, or field(repr=False)"
