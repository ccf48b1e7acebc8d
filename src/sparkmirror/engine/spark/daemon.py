"""Spark's worker daemon on this computer. Preloads the modules every forked worker needs.

Spark runs this module instead of its own (`spark.python.daemon.module`) and has it fork a worker
for each task. Without the preload every worker would import everything itself. None of the imports
starts a thread, so forking is safe. `gc.freeze` keeps the shared memory pages shared.

    python -m sparkmirror.engine.spark.daemon pyspark.worker
"""

from __future__ import annotations

import gc
import importlib
import sys

from pyspark.daemon import manager

TASK_WORKER_MODULE = "pyspark.worker"
"""The worker that runs tasks; other worker modules only plan."""

if __name__ == "__main__":
    if sys.argv[1:] == [TASK_WORKER_MODULE]:
        for module in (TASK_WORKER_MODULE, "sparkmirror.engine.spark.spark_task"):
            importlib.import_module(module)
    gc.freeze()
    manager()
