"""Prepares this process for Spark: environment variables, links, and the settings of Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sparkmirror.config.files.client_config_line_numbers import written_keys_variable
from sparkmirror.config.plugin_module_allowlist import plugin_modules_variable
from sparkmirror.engine.driver.executor_python_link import link_executor_python
from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home
from sparkmirror.engine.driver.jvm_command import (
    gateway_command,
    has_submit_files,
    needs_spark_submit,
)
from sparkmirror.engine.driver.spark_conf import (
    DriverEnvironment,
    build_spark_conf,
    effective_master,
    is_local_master,
    spark_environment,
)
from sparkmirror.engine.gateway_process import GatewayProcess
from sparkmirror.engine.spark.java_check import java_executable, require_java
from sparkmirror.engine.spark.streaming_query import visible_settings
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.java.java_runtime import java_variables
from sparkmirror.security.oauthbearer.allowed_resources import allowed_variables


@dataclass(frozen=True, slots=True)
class PreparedProcess:
    """What the start of Spark needs."""

    settings: dict[str, str] = field(repr=False)
    gateway_home: Path | None
    """Spark's directory, if its JVM starts without `spark-submit`."""


def prepare_process(
    spec: DriverSpec, directory: Path, python: Path | None = None
) -> PreparedProcess:
    """Set environment variables and links for Spark.

    `directory` is for temporary files; `python` is what Spark starts as Python, by default this
    one. Raises DriverLost without a suitable Java.
    """
    os.environ.update(java_variables(os.environ))
    require_java(os.environ)
    home = linked_spark_home(os.environ) if is_local_master(effective_master(spec)) else None
    needs_submit = needs_spark_submit(spec.conf, os.environ)
    has_gateway = home and not (needs_submit or has_submit_files(home.path))
    environment = DriverEnvironment(
        directory=directory,
        python=str(python or sys.executable),
        spark_home=home,
        has_cds_archive=home is not None and home.cds_archive.is_file(),
        executor_variables={
            **allowed_variables(os.environ),
            **written_keys_variable(os.environ),
            **plugin_modules_variable(os.environ),
        },
    )
    os.environ.update(spark_environment(spec, environment, os.environ))
    link_executor_python(os.environ["PYSPARK_PYTHON"], Path.cwd(), Path(sys.prefix))
    gateway_home = home.path if home and has_gateway else None
    return PreparedProcess(build_spark_conf(spec, environment), gateway_home)


def jvm_starter(process: PreparedProcess, directory: Path) -> Callable[[], GatewayProcess] | None:
    """Return what starts the JVM without `spark-submit`; None if something needs that."""
    if process.gateway_home is None:
        return None
    command = gateway_command(
        java_executable(os.environ), process.gateway_home, visible_settings(process.settings)
    )
    return partial(GatewayProcess, command, directory)
