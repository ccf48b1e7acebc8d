"""Ivy: resolves Maven coordinates into a directory of jars.

The installed pyspark package holds Ivy's jar; pyspark itself is not imported. Ivy writes only to
its working directory, so the next run in the same directory continues an interrupted download. Ivy
uses its default repositories, or those of the settings file that SPARKMIRROR_IVY_SETTINGS names.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from sparkmirror.errors import JarsMissing
from sparkmirror.java.java_runtime import JavaRuntime

SETTINGS_VARIABLE = "SPARKMIRROR_IVY_SETTINGS"
SYSTEM_TRUST_STORES = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))
"""The system's trust stores for Java: Debian's, then Red Hat's."""
_HEAP = "-Xmx256m"
_NETWORK_WORDS = ("Server access error", "not found. url=", "proxy server that is not well")
_FAILURE_WORDS = (*_NETWORK_WORDS, "FAILED", ": not found", "Exception", "error")
_TLS_FAILURE = re.compile(r"Server access error at url (\S+) \((.*(?:javax\.net\.ssl|PKIX).*)\)")
_NOT_FOUND = re.compile(r"(\S+)#(\S+);(\S+): not found")


class MavenCoordinates(NamedTuple):
    """The coordinates of a library in a Maven repository."""

    organisation: str
    module: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadProgress:
    """The progress of a download. `total` is 0 while it is unknown."""

    stage: str
    done: int = 0
    total: int = 0
    size_bytes: int = 0
    file: str = ""


@dataclass(kw_only=True)
class _IvyOutputParser:
    """Turns Ivy's output into progress, and collects its error lines."""

    report: Callable[[DownloadProgress], None]
    progress: DownloadProgress = DownloadProgress(stage="resolving")
    errors: list[str] = field(default_factory=list)

    def on_line(self, line: str) -> None:
        """Update the progress or the errors from one line of Ivy's output."""
        now = self.progress
        if found := re.match(r"\tfound \S+#(\S+) in ", line):
            self._update(replace(now, total=now.total + 1, file=found[1].replace(";", "-")))
        elif downloading := re.match(r"downloading \S*?([^/\s]+) \.\.\.", line):
            self._update(replace(now, stage="downloading", file=downloading[1]))
        elif size := re.match(r"\.+ \((\d+)kB\)", line):
            self._update(replace(now, size_bytes=now.size_bytes + int(size[1]) * 1024))
        elif "[SUCCESSFUL ]" in line:
            self._update(replace(now, done=now.done + 1))
        elif any(word in line for word in _FAILURE_WORDS):
            self.errors.append(line.strip())

    def on_dots(self, dots: int) -> None:
        """Report a running download. Ivy prints two dots, then one for each 15 to 16 kB."""
        now = self.progress
        self.report(replace(now, size_bytes=now.size_bytes + max(0, dots - 2) * 15 * 1024))

    def _update(self, progress: DownloadProgress) -> None:
        self.progress = progress
        self.report(progress)


class Ivy:
    """Runs Ivy in one working directory."""

    def __init__(
        self, work: Path, java: JavaRuntime, environ: Mapping[str, str] | None = None
    ) -> None:
        self._work = work
        self._java = java
        self._environ = os.environ if environ is None else environ

    def retrieve(
        self,
        wanted: Sequence[MavenCoordinates],
        into: Path,
        report: Callable[[DownloadProgress], None],
        keep_open: Sequence[int] = (),
    ) -> None:
        """Download the jars of `wanted` and of their dependencies into a directory.

        Ivy inherits the file descriptors `keep_open`: a lock stays held while Ivy runs, even if
        this process is killed. Blocks. Raises JarsMissing.
        """
        self._work.mkdir(parents=True, exist_ok=True)
        module = self._work / "ivy.xml"
        module.write_text(module_file(wanted), encoding="utf-8")
        parser = _IvyOutputParser(report=report)
        if _run(self._command(module, into), parser, keep_open) != 0:
            first = wanted[0]
            if not any(self._work.glob(f"cache/{first.organisation}/{first.module}/*")):
                shutil.rmtree(self._work)  # it holds nothing that the next run can use
            raise JarsMissing(_failure_message(wanted, parser.errors))

    def _command(self, module: Path, into: Path) -> list[str]:
        settings = self._environ.get(SETTINGS_VARIABLE, "")
        if settings and not Path(settings).is_file():
            raise JarsMissing(
                f"{SETTINGS_VARIABLE} names {settings}, which is not a file: correct or unset it."
            )
        return [
            str(self._java.path),
            _HEAP,
            f"-Divy.default.ivy.user.dir={self._work / 'home'}",
            *proxy_options(self._environ),
            *trust_store_options(self._java, SYSTEM_TRUST_STORES),
            *("-jar", str(find_ivy())),
            *(("-settings", settings) if settings else ()),
            *("-ivy", str(module)),
            *("-cache", str(self._work / "cache")),
            *("-confs", "default", "-types", "jar", "bundle"),
            *("-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"),
        ]


def find_ivy() -> Path:
    """Return Ivy's jar inside the installed pyspark package. Raises JarsMissing."""
    spec = importlib.util.find_spec("pyspark")
    packages = list(spec.submodule_search_locations or ()) if spec else []
    jars = [jar for package in packages for jar in sorted(Path(package).glob("jars/ivy-*.jar"))]
    if not jars:
        raise JarsMissing(
            "Kafka's jars are fetched with the Ivy inside pyspark, and pyspark is not installed:"
            " pip install 'sparkmirror[lab]'."
        )
    return jars[-1]


def module_file(wanted: Sequence[MavenCoordinates]) -> str:
    """Return an Ivy module that depends on all coordinates, so that one run resolves them."""
    lines = [
        f"<dependency org={quoteattr(library.organisation)} name={quoteattr(library.module)}"
        f' rev={quoteattr(library.revision)} conf="default->default"/>'
        for library in wanted
    ]
    return (
        '<ivy-module version="2.0"><info organisation="sparkmirror" module="lab"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>\n"
    )


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Return Java's options for the proxies that HTTPS_PROXY and HTTP_PROXY name."""
    options = []
    for scheme in ("https", "http"):
        value = environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or ""
        proxy = urlsplit(value if "//" in value else f"//{value}")
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}"]
            options += [f"-D{scheme}.proxyPort={proxy.port or 80}"]
    return options


def trust_store_options(java: JavaRuntime, stores: Sequence[Path]) -> list[str]:
    """Return the option that makes the packaged Java use the system's trust store.

    A Java that the user installed keeps its own trust store.
    """
    existing = [store for store in stores if store.is_file()] if java.is_packaged else []
    return [f"-Djavax.net.ssl.trustStore={store}" for store in existing[:1]]


def _run(command: Sequence[str], parser: _IvyOutputParser, keep_open: Sequence[int]) -> int:
    """Run Ivy and return its exit code. An exception here kills Ivy."""
    output, write_end = os.pipe()
    with os.fdopen(output, "rb", buffering=0):
        with os.fdopen(write_end, "wb"):
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=subprocess.STDOUT,
                pass_fds=keep_open,
                start_new_session=True,
            )
        try:
            _read_output(output, parser)
            return process.wait()
        finally:
            process.kill()
            process.wait()


def _read_output(output: int, parser: _IvyOutputParser) -> None:
    """Pass complete lines to the parser, and the dots of a running download."""
    rest = b""
    while chunk := os.read(output, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            parser.on_line(line.decode(errors="replace").rstrip("\r"))
        if rest and not rest.strip(b"."):
            parser.on_dots(len(rest))


def _failure_message(wanted: Sequence[MavenCoordinates], errors: list[str]) -> str:
    """Return one sentence made from Ivy's output: what failed, and what to do."""
    library = ":".join(wanted[0])
    for tls_failure in filter(None, map(_TLS_FAILURE.search, errors)):
        return (
            f"{library} is not in the cache, and Java does not accept the TLS certificate of"
            f" {urlsplit(tls_failure[1]).hostname} ({tls_failure[2]}): if your network has a"
            " certificate authority of its own, name a trust store that holds it, for example"
            f" JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore={SYSTEM_TRUST_STORES[0]}."
        )
    if any(word in error for error in errors for word in _NETWORK_WORDS):
        return (
            f"{library} is not in the cache and the Maven repository cannot be"
            f" reached: go online once, set HTTPS_PROXY, or name a mirror in {SETTINGS_VARIABLE}."
        )
    absent = [":".join(match.groups()) for match in map(_NOT_FOUND.search, errors) if match]
    if absent:
        return f"The Maven repository does not hold {absent[0]}: choose another version."
    causes = dict.fromkeys(error for error in errors if not error.startswith("::"))
    excerpt = "; ".join(list(causes)[:2]) or "Ivy printed no reason"
    return f"{library} cannot be fetched ({excerpt}): try again."
