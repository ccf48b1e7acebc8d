"""pyspark learns whether there is numpy without an import of pandas."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from sparkmirror.engine.spark.numpy_lookup import import_numpy_lookup
import_numpy_lookup()
import_numpy_lookup()
from pyspark.sql.types import NumpyArrayConverter
NumpyArrayConverter().can_convert([1])
from pyspark.testing.utils import have_numpy
import numpy
assert have_numpy
assert not {"pandas", "pyarrow"} & set(sys.modules), "none of them is imported or hidden"
import pandas, pyarrow
"""


def test_the_first_call_of_the_jvm_imports_no_pandas() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
