"""The JVM that the driver starts itself: where its gateway listens, or why it does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sparkmirror.engine.gateway_process import ADDRESS_VARIABLE, GatewayProcess
from sparkmirror.errors import DriverLost

WRITES_ADDRESS = f"""
import os, sys
path = os.environ["{ADDRESS_VARIABLE}"]
with open(path + ".new", "wb") as file:
    file.write((4711).to_bytes(4, "big") + (6).to_bytes(4, "big") + b"secret")
os.rename(path + ".new", path)
sys.stdin.read()
"""


def test_the_address_is_what_the_gateway_has_written(tmp_path: Path) -> None:
    jvm = GatewayProcess([sys.executable, "-c", WRITES_ADDRESS], tmp_path)
    assert jvm.await_address() == (4711, "secret")
    assert jvm.process.poll() is None
    jvm.process.communicate()
    assert jvm.process.returncode == 0, "it ends with its standard input"


def test_a_jvm_that_ends_before_is_an_error(tmp_path: Path) -> None:
    jvm = GatewayProcess([sys.executable, "-c", "import sys; sys.exit(3)"], tmp_path)
    with pytest.raises(DriverLost, match="code 3"):
        jvm.await_address()
    jvm.process.communicate()
