"""The Spark settings of a worker's properties file.

    spark.*                        passed to Spark unchanged; spark.master names a cluster
    sparkmirror.receipts           where receipts are written: a directory, or any URI Spark knows
    sparkmirror.log.dir            where the logs of Spark and of its drivers go
    sparkmirror.epoch.seconds      how long an epoch lasts

The default directories are below the user's state directory, in one named after the worker group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sparkmirror.engine.supervisor.driver_spec import DEFAULT_EPOCH_S, DriverSpec
from sparkmirror.errors import ConfigError

RECEIPTS = "sparkmirror.receipts"
LOG_DIRECTORY = "sparkmirror.log.dir"
EPOCH_SECONDS = "sparkmirror.epoch.seconds"
MASTER = "spark.master"
_SPARK_PREFIX = "spark."
COMMON_LOG = "spark-application"
"""The log file of the application that connectors share, without `.log`."""
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """How a worker runs Spark."""

    log_directory: Path
    receipts: str
    name: str = "worker"
    """The group of the worker, for the name of the application."""
    master: str = ""
    epoch_s: float = DEFAULT_EPOCH_S
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], group: str, state: Path) -> Self:
        """From the expanded properties of a worker; `state` is the user's state directory.

        Raises ConfigError.
        """
        own = state / "workers" / _UNSAFE_CHARACTERS.sub("_", group)
        epoch = properties.get(EPOCH_SECONDS, str(DEFAULT_EPOCH_S)).strip()
        try:
            epoch_s = float(epoch)
        except ValueError:
            epoch_s = -1.0
        if not epoch_s > 0:
            raise ConfigError.of(EPOCH_SECONDS, f"{EPOCH_SECONDS} {epoch} is not a number above 0")
        conf = own_spark_conf(properties)
        return cls(
            log_directory=Path(properties.get(LOG_DIRECTORY) or own / "logs"),
            receipts=properties.get(RECEIPTS) or str(own / "receipts"),
            name=group,
            master=conf.pop(MASTER, ""),
            epoch_s=epoch_s,
            conf=conf,
        )

    def driver_spec(self, owner: str = "", own_conf: Mapping[str, str] | None = None) -> DriverSpec:
        """The spec of an application, without jobs. Creates the log directory.

        `owner` is the job that has it alone, with Spark settings of its own; empty for the
        application that all other jobs share.
        """
        conf = {**self.conf, **(own_conf or {})}
        file = _UNSAFE_CHARACTERS.sub("_", f"spark-application-{owner}" if owner else COMMON_LOG)
        self.log_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DriverSpec(
            receipts=self.receipts,
            log=str(self.log_directory / f"{file}.log"),
            name=f"sparkmirror {owner or self.name}",
            master=conf.pop(MASTER, self.master),
            epoch_s=self.epoch_s,
            conf=conf,
        )


def own_spark_conf(config: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark settings of a connector's config."""
    return {key: value for key, value in config.items() if key.startswith(_SPARK_PREFIX)}
