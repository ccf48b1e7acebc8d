"""The mother of Spark's Python workers on this computer: imports once what all her children need.

Spark runs this module instead of its own (`spark.python.daemon.module`), has it fork a worker for
each task, and would have every worker import everything for itself. Nothing that is imported here
starts a thread, so forking is safe; what is frozen is neither collected nor copied.

    python -m sparkmirror.engine.spark.daemon pyspark.worker
"""

from __future__ import annotations

import gc
import importlib
import sys

from pyspark.daemon import manager

TASK_WORKER_MODULE = "pyspark.worker"
"""The kind of worker that runs tasks; the others plan."""

if __name__ == "__main__":
    if sys.argv[1:] == [TASK_WORKER_MODULE]:
        for module in (TASK_WORKER_MODULE, "sparkmirror.engine.spark.spark_task"):
            importlib.import_module(module)
    gc.freeze()
    manager()
