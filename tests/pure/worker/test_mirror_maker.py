"""A node of dedicated mode starts its REST server, also if another program has the default port."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.errors import ConfigError
from sparkmirror.worker import mirror_maker
from sparkmirror.worker.mirror_maker import MirrorMaker
from sparkmirror.worker.shutdown_signal import ShutdownSignal

DEDICATED = """clusters=A,B
A.bootstrap.servers=127.0.0.1:9
B.bootstrap.servers=127.0.0.1:9
A->B.enabled=true
B->A.emit.heartbeats.enabled=false
"""


class EndsAtOnce(ShutdownSignal):
    """A signal that has arrived when the node has started."""

    def wait(self, timeout_s: float) -> bool:
        return True


def node_of(text: str, directory: Path) -> MirrorMaker:
    file = directory / "mm2.properties"
    file.write_text(text)
    variables = {"XDG_STATE_HOME": str(directory)}
    return MirrorMaker(MirrorMakerConfig.open(load_properties(file), variables), (), variables)


def test_another_program_may_have_the_default_port_but_not_the_port_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(mirror_maker, "DEFAULT_LISTENERS", (listener,))
        node = node_of(DEDICATED, tmp_path)
        assert node.run(EndsAtOnce()) == 0
        assert node.rest.address.startswith("http://127.0.0.1:")
        assert node.rest.address.rstrip("/") != listener
        with pytest.raises(ConfigError, match=f"cannot listen on {listener}"):
            node_of(f"{DEDICATED}listeners={listener}\n", tmp_path).run(EndsAtOnce())
