"""Names of resources, Secrets, keys and variables are valid, and no two owners share one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.cli.strimzi.properties_to_resource.kubernetes_names import (
    UniqueNames,
    is_resource_name,
    is_secret_key,
    is_secret_name,
    resource_name,
    secret_key_name,
    variable_name,
)
from sparkmirror.cli.strimzi.properties_to_resource.secret_names import SecretNames
from sparkmirror.config.secrets.variables import ConfigVariable


@settings(max_examples=30)
@given(st.lists(st.text(alphabet="aB1-_. é", max_size=80), max_size=8))
def test_any_text_becomes_a_valid_name_of_its_own(texts: list[str]) -> None:
    names = UniqueNames()
    made = {text: names.name_of(text, resource_name(text)) for text in texts}
    assert all(is_resource_name(name) for name in made.values())
    assert len({*made.values()}) == len({*texts})
    assert all(is_secret_key(secret_key_name(text)) for text in texts)
    assert all(variable_name(text)[:1].isalpha() for text in texts)


def test_valid_names_are_kept() -> None:
    for name in ("a", "my-mirror-2"):
        assert resource_name(name) == name
    assert secret_key_name("user.crt") == "user.crt"
    assert is_secret_name("a.b-c")
    assert not is_secret_name("a..b")
    assert not is_resource_name("a.b")


def test_files_with_one_name_are_secrets_with_two() -> None:
    secrets = SecretNames("/etc/secrets", {"file": "file"}, [], [])
    keys = [
        secrets.key_of(ConfigVariable("file", path, key), "some.key")
        for path, key in (
            ("/one/Access.properties", "a b"),
            ("/one/Access.properties", "a-b"),
            ("/two/access.properties", "a b"),
        )
    ]
    assert keys == [("access", "a-b"), ("access", "a-b-2"), ("access-2", "a-b")]
