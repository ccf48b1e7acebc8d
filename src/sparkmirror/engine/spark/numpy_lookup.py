"""Lets pyspark look for numpy without an import of pandas and pyarrow.

At its first call of the JVM pyspark imports `pyspark.testing.utils`, to know whether there is
numpy. That module also imports pandas and pyarrow, to know whether pyspark's own tests may use
them: half a second of each start, while nothing else can go on.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

_MODULE: Final = "pyspark.testing.utils"
_NOT_NEEDED: Final = ("pandas", "pyarrow")


def import_numpy_lookup() -> None:
    """Import the module as if there were no pandas and no pyarrow; later imports find both.

    Requires that no other thread imports anything meanwhile.
    """
    hidden: dict[str, Any] = {name: None for name in _NOT_NEEDED if name not in sys.modules}
    sys.modules.update(hidden)
    try:
        importlib.import_module(_MODULE)
    finally:
        for name in hidden:
            del sys.modules[name]
