"""The module file and the Java options of Ivy."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.java.java_runtime import JavaRuntime
from sparkmirror.lab.kafka.ivy import (
    MavenCoordinates,
    find_ivy,
    module_file,
    proxy_options,
    trust_store_options,
)


def test_module_file_contains_all_coordinates() -> None:
    text = module_file(
        [MavenCoordinates("org.a", "one", "1.0"), MavenCoordinates("org.b", "t<w&o", "2")]
    )
    assert '<dependency org="org.a" name="one" rev="1.0" conf="default->default"/>' in text
    assert '<dependency org="org.b" name="t&lt;w&amp;o" rev="2" conf="default->default"/>' in text


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({}, []),
        ({"https_proxy": ""}, []),
        (
            {"https_proxy": "http://p.example:3128"},
            ["-Dhttps.proxyHost=p.example", "-Dhttps.proxyPort=3128"],
        ),
        ({"HTTP_PROXY": "p:8080/"}, ["-Dhttp.proxyHost=p", "-Dhttp.proxyPort=8080"]),
        ({"HTTPS_PROXY": "http://p"}, ["-Dhttps.proxyHost=p", "-Dhttps.proxyPort=80"]),
    ],
    ids=["none", "empty", "https", "bare", "noport"],
)
def test_proxy_variables_become_java_properties(
    environ: dict[str, str], options: list[str]
) -> None:
    assert proxy_options(environ) == options


def test_packaged_java_uses_the_first_trust_store_of_the_system(tmp_path: Path) -> None:
    store = tmp_path / "cacerts"
    store.touch()
    packaged = JavaRuntime(path=Path("java"), version="21", is_packaged=True)
    stores = [tmp_path / "absent", store, store]
    assert trust_store_options(packaged, stores) == [f"-Djavax.net.ssl.trustStore={store}"]
    assert trust_store_options(packaged, []) == []
    assert trust_store_options(JavaRuntime(path=Path("java"), version="21"), stores) == []


def test_ivy_is_found_inside_pyspark() -> None:
    assert find_ivy().name.startswith("ivy-")
