"""Kafka's three config providers: what they read and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.secrets.providers import ConfigProviders, create_providers
from sparkmirror.config.secrets.variables import expand_variables
from sparkmirror.errors import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider."


def providers(environment: dict[str, str] | None = None, **config: str) -> ConfigProviders:
    raw = {
        "config.providers": "file, dir,env",
        "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
        "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
        "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
    }
    named = {f"config.providers.{key.replace('__', '.')}": value for key, value in config.items()}
    return create_providers(raw | named, environment or {})


def fetched(text: str, found: ConfigProviders) -> str:
    return expand_variables({"key": text}, found.by_name).values["key"]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/s.properties").write_text("pw = Zürich\\u0021\nempty=\n", "utf-8")
    (tmp_path / "in/token").write_text(" a b\n", "utf-8")
    (tmp_path / "in/folder").mkdir()
    (tmp_path / "out.properties").write_text("pw=x\n", "utf-8")
    return tmp_path


def test_a_file_is_read_as_utf_8_properties(secrets: Path) -> None:
    file = secrets / "in/s.properties"
    assert fetched(f"<${{file:{file}:pw}}>", providers()) == "<Zürich!>"
    assert fetched(f"<${{file:{file}:empty}}>", providers()) == "<>"
    assert fetched(f"${{file:{file}:none}}", providers()) == f"${{file:{file}:none}}"
    assert fetched("${file:pw}", providers()) == "${file:pw}"


def test_a_file_is_read_again_each_time(secrets: Path) -> None:
    file = secrets / "in/s.properties"
    found = providers()
    before = fetched(f"${{file:{file}:pw}}", found)
    file.write_text("pw=new", "utf-8")
    assert (before, fetched(f"${{file:{file}:pw}}", found)) == ("Zürich!", "new")


def test_a_directory_gives_whole_files_untrimmed(secrets: Path) -> None:
    folder = secrets / "in"
    assert fetched(f"${{dir:{folder}:token}}", providers()) == " a b\n"
    for key in ("none", "folder", "..", "../out.properties", "folder/..", ""):
        text = f"${{dir:{folder}:{key}}}"
        assert fetched(text, providers()) == text


@pytest.mark.parametrize("path", ["", "/no/such/folder"])
def test_a_path_that_is_no_directory_leaves_the_placeholder(path: str) -> None:
    text = f"${{dir:{path}:k}}"
    assert fetched(text, providers()) == text


def test_variables_come_from_the_given_environment() -> None:
    found = providers({"USER_NAME": "alice", "PW": "p"}, env__param__allowlist__pattern="USER.*")
    assert fetched("${env:USER_NAME} ${env:PW} ${env:HOME}", found) == "alice ${env:PW} ${env:HOME}"
    assert fetched("${env:PW}", providers({"PW": "p"})) == "p"
    whole = providers({"USER_NAME": "alice"}, env__param__allowlist__pattern="USER")
    assert fetched("${env:USER_NAME}", whole) == "${env:USER_NAME}"


def test_a_path_for_the_environment_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match="key: .*env:some/path:PW.* no paths"):
        fetched("${env:some/path:PW}", providers({"PW": "p"}))


def test_nothing_outside_the_allowed_paths_is_read(secrets: Path) -> None:
    allowed = f"{secrets / 'in'}, {secrets / 'in/folder'}"
    found = providers(file__param__allowed__paths=allowed, dir__param__allowed__paths=allowed)
    inside = secrets / "in/folder/../s.properties"
    assert fetched(f"${{file:{inside}:pw}}", found) == "Zürich!"
    for text in (
        f"${{file:{secrets / 'out.properties'}:pw}}",
        f"${{file:{secrets / 'in/../out.properties'}:pw}}",
        f"${{file:{secrets}/in2/s.properties:pw}}",
        f"${{dir:{secrets}:out.properties}}",
    ):
        expansion = expand_variables({"key": text}, found.by_name)
        assert expansion.values["key"] == text
        assert "allowed.paths does not allow" in expansion.unresolved[0].message


@pytest.mark.parametrize(
    ("paths", "fault"), [("in", "is not absolute"), ("/no/such", "does not exist")]
)
def test_allowed_paths_must_be_absolute_and_exist(paths: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as raised:
        providers(file__param__allowed__paths=paths)
    assert raised.value.faults[0].key == "config.providers.file.param.allowed.paths"


def test_an_unreadable_file_names_file_and_key(secrets: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        fetched("${file:/no/such.properties:pw}", providers())
    (fault,) = raised.value.faults
    assert fault.key == "key"
    assert "/no/such.properties: there is no such file" in fault.message
    bad = secrets / "bad"
    bad.mkdir()
    (bad / "token").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        fetched(f"${{dir:{bad}:token}}", providers())


def test_every_unknown_class_is_a_fault() -> None:
    with pytest.raises(ConfigError) as raised:
        providers(env__class="com.example.VaultConfigProvider", dir__class="Nope")
    assert [fault.key for fault in raised.value.faults] == [
        "config.providers.dir.class",
        "config.providers.env.class",
    ]
    assert "Class com.example.VaultConfigProvider could not be found." in str(raised.value)


def test_a_bad_pattern_is_a_fault() -> None:
    with pytest.raises(ConfigError) as raised:
        providers(env__param__allowlist__pattern="(")
    assert raised.value.faults[0].key == "config.providers.env.param.allowlist.pattern"


def test_a_provider_may_be_given_by_its_simple_class_name() -> None:
    assert "file" in providers(file__class="FileConfigProvider").by_name


def test_a_provider_without_a_class_gets_a_notice_and_is_not_created() -> None:
    found = create_providers({"config.providers": "vault"}, {})
    assert found.by_name == {}
    assert [notice.kind for notice in found.notices] == [NoticeKind.PROVIDER]
    assert "config.providers.vault.class" in found.notices[0].message


def test_only_providers_that_config_providers_names_are_created() -> None:
    raw = {
        "config.providers": "mine",
        "config.providers.mine.class": f"{PACKAGE}EnvVarConfigProvider",
        "config.providers.other.class": f"{PACKAGE}FileConfigProvider",
    }
    assert create_providers(raw, {}).by_name.keys() == {"mine"}
    assert create_providers({}, {}).by_name == {}


@pytest.mark.parametrize("text", ["${file:%s/in/s.properties:pw}", "${dir:%s/in:token}"])
def test_a_file_that_others_may_read_is_one_warning_without_its_content(
    secrets: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    for file in ("s.properties", "token"):
        (secrets / "in" / file).chmod(0o600)
    found = providers()
    fetched(text % secrets, found)
    assert caplog.messages == []
    for file in ("s.properties", "token"):
        (secrets / "in" / file).chmod(0o644)
    values = [fetched(text % secrets, found) for _ in range(2)]
    (message,) = caplog.messages
    assert message.startswith(f"config.providers: {secrets / 'in'}")
    assert "every user may read it: chmod 600" in message
    assert values[0] not in message
