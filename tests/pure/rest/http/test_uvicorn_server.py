"""The HTTP server leaves the signals of the process alone."""

from __future__ import annotations

import signal
from typing import Any

from sparkmirror.rest.http.application import RestApplication
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.router import RestRouter
from sparkmirror.rest.http.uvicorn_server import BoundListener, UvicornServer
from sparkmirror.rest.server_options import RestOptions


def loopback_server() -> UvicornServer:
    options = RestOptions()
    application = RestApplication(RestRouter(()), options, adds_headers=False)
    listening_socket = RestListener.parse("http://127.0.0.1:0").bind()
    bound = BoundListener(listening_socket=listening_socket, application=application, tls=None)
    return UvicornServer([bound], options.limits)


def test_a_server_in_the_main_thread_installs_no_signal_handlers() -> None:
    server = loopback_server()
    handlers: list[Any] = []

    def on_ready() -> None:
        handlers.append(signal.getsignal(signal.SIGTERM))
        server.stop(1.0)

    before = signal.getsignal(signal.SIGTERM)
    server.run(on_ready)
    assert handlers == [before]
