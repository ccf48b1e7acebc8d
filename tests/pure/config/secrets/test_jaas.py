"""sasl.jaas.config follows Kafka's grammar, may lack its semicolon, and shows no secret."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.secrets.jaas import parse_jaas_config, parse_login_module, tokenize
from sparkmirror.errors import ConfigError
from tests.support.golden import golden_json

VECTORS: list[dict[str, Any]] = golden_json("vectors/jaas.json")
CORPUS: list[tuple[str, Any]] = golden_json("corpus/jaas.json")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def read(text: str) -> list[dict[str, Any]] | str:
    """The modules as the recordings write them, or the first part of the error."""
    try:
        modules = parse_jaas_config(text)
    except ConfigError as error:
        return re.split(r" \(at character \d+\)|;", str(error))[0]
    return [{"module": m.class_name, "flag": m.flag, "options": dict(m.options)} for m in modules]


def masked(message: str) -> str:
    """Java's message without the word that it quotes, which may be a part of a secret."""
    message = re.sub(r"key '(?!null').*'", "key '[hidden]'", message, flags=re.DOTALL)
    return re.sub(r"flag '.*' in", "flag in", message, flags=re.DOTALL)


@pytest.mark.parametrize("case", VECTORS, ids=range(len(VECTORS)))
def test_every_recorded_text_is_parsed_as_kafka_parses_it(case: dict[str, Any]) -> None:
    expected = case["result"]
    found = read(case["input"])
    assert found == (masked(expected["message"]) if isinstance(expected, dict) else expected)


def test_random_texts_are_accepted_or_refused_as_kafka_does() -> None:
    for text, expected in CORPUS:
        found = read(text)
        if isinstance(expected, str):
            assert isinstance(found, str), repr(text)
            assert masked(found) == masked(expected), repr(text)
        else:
            assert found == expected, repr(text)


def test_a_missing_semicolon_is_accepted_with_a_notice() -> None:
    module, notices = parse_login_module(f'{PLAIN} required username="u" password="p"')
    assert module.options == {"username": "u", "password": "p"}
    assert [notice.kind for notice in notices] == [NoticeKind.JAAS]
    with pytest.raises(ConfigError, match="not terminated by semi-colon"):
        parse_jaas_config(f'{PLAIN} required username="u" password="p"')


def test_a_module_with_its_semicolon_gives_no_notice() -> None:
    module, notices = parse_login_module(f"{PLAIN} required;")
    assert (module.class_name, module.flag, notices) == (PLAIN, "required", ())


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(ConfigError, match="not terminated by semi-colon"):
        parse_login_module(f'{PLAIN} required username="u" password="p;')


def test_a_client_has_one_module() -> None:
    with pytest.raises(ConfigError, match="contains 2 login modules, should be 1 module"):
        parse_login_module("a.B required; c.D required;")


@pytest.mark.parametrize("module", ["JndiLoginModule", "LdapLoginModule"])
def test_login_modules_that_kafka_forbids_are_refused(module: str) -> None:
    with pytest.raises(ConfigError, match="is not allowed"):
        parse_login_module(f"com.sun.security.auth.module.{module} required;")


@pytest.mark.parametrize(
    "text",
    [
        f"{PLAIN} required username=alice password=my hunter2;",
        f"{PLAIN} required username=alice password=my hunter2= ;",
        f"{PLAIN} required username=alice password=my hunter2==;",
        "alice hunter2;",
        f"{PLAIN} required password=@hunter2;",
        f'{PLAIN} required password="hunter2',
    ],
)
def test_no_error_shows_a_part_of_a_secret(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_login_module(text)
    assert "hunter2" not in str(raised.value)


def test_an_error_gives_the_position_and_names_well_known_options() -> None:
    with pytest.raises(ConfigError, match=r"key 'password'.*character 12.*double quotes"):
        parse_login_module("M required password=1;")


def test_no_repr_shows_an_option() -> None:
    module, _ = parse_login_module(f'{PLAIN} required password="hunter2";')
    assert "hunter2" not in repr(module) + repr(list(tokenize('"hunter2" hunter2')))


OPTIONS = st.dictionaries(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9._-]{0,8}", fullmatch=True),
    st.text(st.characters(exclude_characters="\n\r"), max_size=10),
    max_size=4,
)


@given(OPTIONS)
@settings(max_examples=60, deadline=None)
def test_quoted_options_are_read_back(options: dict[str, str]) -> None:
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in options.items()}
    text = " ".join(f'{name}="{value}"' for name, value in quoted.items())
    (module,) = parse_jaas_config(f"{PLAIN} required {text};")
    assert module.options == options
