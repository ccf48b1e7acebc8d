"""What the REST server reads: bodies, paths, headers, and bytes that should be HTTP."""

from __future__ import annotations

import errno
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from sparkmirror.errors import BadRequest, RequestFailed
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.path import quote_segment, split_path
from sparkmirror.rest.http.router import RestRouter
from sparkmirror.rest.routes import request_bodies
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestLimits, RestOptions
from tests.fuzz.fuzz_target import FuzzTarget, Parse, direct
from tests.support.rest.all_routes import all_routes
from tests.support.rest.scripted_herder import ScriptedHerder

_READERS = (
    request_bodies.read_create,
    request_bodies.read_config,
    request_bodies.read_patch,
    request_bodies.read_offsets,
    request_bodies.read_level,
)


def _bodies(data: bytes) -> None:
    refusals = []
    for read in _READERS:
        try:
            read(data)
        except (RequestFailed, BadRequest) as error:
            refusals.append(error)
    if len(refusals) == len(_READERS):
        raise refusals[0]


BODIES = FuzzTarget(
    name="REST bodies",
    seeds=[
        b'{"name":"c","config":{"tasks.max":2,"a":null,"b":true,"c":1.50},"initial_state":"PAUSED"}',
        b'{"connector.class":"MirrorSourceConnector","topics":"a,b","x":"\\u00fc\\ud83d\\ude00"}',
        b'{"offsets":[{"partition":{"cluster":"a","topic":"t","partition":0},"offset":{"offset":3}}]}',
        b'{"level":"DEBUG"}',
    ],
    tokens=[b"[" * 3000, b'{"a":' * 3000, b"\\ud800", b"1" * 5000, b"Infinity", b"null", b","],
    open_parser=direct(_bodies),
    errors=(RequestFailed, BadRequest),
)

_ROUTER = RestRouter(all_routes(ScriptedHerder()))
_USERS = BasicAuthUsers({})


def _paths(data: bytes) -> None:
    method, _, rest = data.decode("latin-1").partition(" ")
    path, _, header = rest.partition(" ")
    _USERS.authenticate(header)
    segments = split_path(path)
    assert split_path("/" + "/".join(quote_segment(each) or "x" for each in segments)) is not None
    _ROUTER.find(method, segments, {"content-type": header, "accept": header})


PATHS = FuzzTarget(
    name="REST paths",
    seeds=[
        b"GET /connectors/a-%3Eb.Mirror/status application/json",
        b"PUT /connectors/a%2Fb;v=1/topics/reset text/plain;q=0.5,*/*",
        b"GET http://host:8083/connector-plugins/x/config Basic YWxpY2U6czNjcmV0",
        b"POST /connectors/%C3%BC/tasks/0/restart */*",
    ],
    tokens=[b"%", b"%2", b"%2f", b"%ff", b"//", b"/../", b";", b"?", b"*/*;q=0", b"\xff"],
    open_parser=direct(_paths),
    errors=(BadRequest,),
)

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_SERVER_ERRORS = re.compile(
    rb'"message":"(The body of the request|Cannot read|Unrecognized|Unknown)'
)
"""A faulty body is a 500, as in Connect."""
_READ_TIMEOUT_S = 50.0


class _ErrorCollector(logging.Handler):
    """Collects what the server logs as an error: no client may cause one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def _http_server() -> Iterator[Parse]:
    herder = ScriptedHerder()
    # A changed request may still be valid: then the herder refuses it.
    herder.set_response(404, {"error_code": 404, "message": "there is no such connector"})
    options = RestOptions(access_log=False, limits=RestLimits(max_body_bytes=1 << 16))
    server = RestServer(herder, [RestListener.parse("http://127.0.0.1:0")], options)
    server.start()
    url = urlsplit(server.address)
    stack_traces = _ErrorCollector()
    logging.getLogger().addHandler(stack_traces)

    def send(data: bytes) -> None:
        with socket.create_connection((url.hostname, url.port), timeout=_READ_TIMEOUT_S) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
            except ConnectionError:
                return
            except OSError as error:
                if error.errno == errno.ENOTCONN:  # the server has closed the connection
                    return
                raise
        for status in _STATUS.findall(answer):
            assert int(status) < 500 or _SERVER_ERRORS.search(answer), answer[:500]

    try:
        yield send
    finally:
        server.stop(1.0)
        logging.getLogger().removeHandler(stack_traces)
    assert stack_traces.messages == []


_JSON = b"\r\nHost: x\r\nContent-Type: application/json\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
HTTP = FuzzTarget(
    name="HTTP",
    seeds=[
        b"GET /nope HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"PUT /connectors/a/config HTTP/1.1" + _JSON + b"Content-Length: 2\r\n\r\n{}",
        b"PUT /connectors/a/config HTTP/1.1" + _JSON + b'Content-Length: 9\r\n\r\n{"a": []}',
        b"OPTIONS /connectors HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\nConnection: close\r\n\r\n",
        b"POST /connectors HTTP/1.1" + _JSON + _CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n",
        b"GET /a HTTP/1.0\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    tokens=[
        *(b"\r\n", b"\n", b": ", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"),
        *(b"Expect: 100-continue\r\n", b"ffffffff\r\n", b"HTTP/1.1", b"Upgrade: websocket\r\n"),
        *(b"Content-Length: 99999999999999\r\n", b"x" * 70_000),
    ],
    open_parser=_http_server,
    errors=(),
)
