"""kafka-python without its clients: their packages run when a program asks for one of their names.

The packages `kafka` and `kafka.net` import consumer, producer, admin client and their network code:
half of what this program imports to send a request, in every process. It needs the messages and the
SASL mechanisms only. Modules that import kafka-python import this module before.
"""

from __future__ import annotations

import sys
import threading
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType

DEFERRED_PACKAGES = ("kafka", "kafka.net")
_lock = threading.RLock()


def defer_packages() -> None:
    """Have the packages run later, unless the program has imported them already."""
    for name in DEFERRED_PACKAGES:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            module = sys.modules[name] = _deferred_module(spec)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)


def _deferred_module(spec: ModuleSpec) -> ModuleType:
    module = module_from_spec(spec)
    has_run = False

    def run_and_get(name: str) -> object:
        """Called for a name that the module does not have yet."""
        nonlocal has_run
        with _lock:
            if not has_run and not name.startswith("__") and spec.loader is not None:
                has_run = True
                spec.loader.exec_module(module)
        try:
            return vars(module)[name]
        except KeyError:
            raise AttributeError(f"module {spec.name} has no attribute {name}") from None

    vars(module)["__getattr__"] = run_and_get
    return module


defer_packages()
