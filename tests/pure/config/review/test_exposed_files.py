"""A file with secrets that others may read is one notice, for each place that may name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.review.exposed_files import exposed_file_notices
from sparkmirror.config.secrets.file_permissions import exposure_of

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = (
    "config.providers=f,d\n"
    f"config.providers.f.class={PACKAGE}.FileConfigProvider\n"
    "config.providers.d.class=DirectoryConfigProvider\n"
)


def exposed(
    tmp_path: Path, text: str, kafka_opts: str = "", *, with_read_files: bool = True
) -> list[tuple[str, str]]:
    """The key and the file of each notice about a properties file with this text."""
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    file.chmod(0o644)
    notices = exposed_file_notices(
        load_properties(file), {"KAFKA_OPTS": kafka_opts}, with_read_files=with_read_files
    )
    assert {notice.kind for notice in notices} <= {NoticeKind.READABLE_BY_OTHERS}
    return [(notice.key, Path(notice.message.split()[0]).name) for notice in notices]


def secret(path: Path, mode: int = 0o644) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("password=x\n")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("mode", "who"),
    [(0o600, ""), (0o400, ""), (0o620, ""), (0o640, "its group"), (0o604, "every user")],
)
def test_the_mode_of_a_file_decides(tmp_path: Path, mode: int, who: str) -> None:
    file = secret(tmp_path / "secret", mode)
    expected = f"{file} holds a secret, and {who} may read it: chmod 600 {file}" if who else ""
    assert exposure_of(file) == expected
    assert exposure_of(tmp_path) == exposure_of(tmp_path / "missing") == ""


def test_the_files_of_config_providers_are_checked(tmp_path: Path) -> None:
    file, folder = secret(tmp_path / "access.properties"), tmp_path / "secrets"
    secret(folder / "token")
    text = (
        f"{PROVIDERS}A.sasl.jaas.config=${{f:{file}:a}} ${{f:{file}:b}}\n"
        f"B.sasl.jaas.config=${{d:{folder}:token}}\nB.x=${{other:{file}:a}}\n"
    )
    assert exposed(tmp_path, text) == [
        ("A.sasl.jaas.config", "access.properties"),
        ("B.sasl.jaas.config", "token"),
    ]
    assert exposed(tmp_path, text, with_read_files=False) == []
    file.chmod(0o600)
    (folder / "token").chmod(0o600)
    assert exposed(tmp_path, text) == []


def test_a_file_with_a_secret_in_plain_text_is_checked_itself(tmp_path: Path) -> None:
    assert exposed(tmp_path, "A.ssl.key.password=hunter2\n") == [("", "mm2.properties")]
    assert exposed(tmp_path, "A.ssl.key.password=${env:PASSWORD}\n") == []


@pytest.mark.parametrize(
    "key",
    [
        "ssl.keystore.location",
        "listeners.https.ssl.keystore.location",
        "A->B.source.consumer.ssl.keystore.location",
        "sparkmirror.rest.bearer.tokens.file",
        "A.sasl.oauthbearer.assertion.private.key.file",
        "A.sasl.oauthbearer.assertion.file",
    ],
)
def test_a_file_that_a_key_names_is_checked(tmp_path: Path, key: str) -> None:
    file = secret(tmp_path / "named")
    assert exposed(tmp_path, f"{key}={file}\n") == [(key, "named")]
    is_of_the_server = key == "sparkmirror.rest.bearer.tokens.file"
    start = exposed(tmp_path, f"{key}={file}\n", with_read_files=False)
    assert start == ([(key, "named")] if is_of_the_server else [])


@pytest.mark.parametrize("form", ["file:{}", "file://{}"])
def test_a_token_file_is_checked(tmp_path: Path, form: str) -> None:
    file = secret(tmp_path / "token")
    key = "A.sasl.oauthbearer.token.endpoint.url"
    assert exposed(tmp_path, f"{key}={form.format(file)}\n") == [(key, "token")]
    assert exposed(tmp_path, f"{key}=https://idp.example.com/token\n") == []


@pytest.mark.parametrize(
    "option",
    [
        "keyTab",
        "oauth.access.token.location",
        "oauth.refresh.token.location",
        "oauth.client.assertion.location",
    ],
)
def test_a_file_that_an_option_of_a_login_names_is_checked(tmp_path: Path, option: str) -> None:
    file = secret(tmp_path / "named")
    text = f'A.sasl.jaas.config=a.Module required {option}="{file}";\n'
    assert exposed(tmp_path, text)[-1] == ("A.sasl.jaas.config", "named")
    file.chmod(0o600)
    assert ("A.sasl.jaas.config", "named") not in exposed(tmp_path, text)


def test_a_trust_store_is_no_secret(tmp_path: Path) -> None:
    file = secret(tmp_path / "trust")
    assert exposed(tmp_path, f"ssl.truststore.location={file}\n") == []


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_the_jaas_file_of_kafka_opts_is_checked(tmp_path: Path, quote: str) -> None:
    file = secret(tmp_path / "jaas.conf")
    options = f"-Xmx1g -Djava.security.auth.login.config={quote}{file}{quote} -Dx=y"
    assert exposed(tmp_path, "a=b\n", options) == [("", "jaas.conf")]


@pytest.mark.parametrize("with_read_files", [True, False])
def test_the_file_of_rest_users_is_checked(tmp_path: Path, with_read_files: bool) -> None:
    users, keytab = secret(tmp_path / "users.properties"), secret(tmp_path / "mirror.keytab")
    jaas_file = tmp_path / "jaas.conf"
    jaas_file.write_text(
        f'KafkaConnect {{ a.PropertyFileLoginModule required file="{users}"; }};\n'
        f'KafkaClient {{ a.Krb5LoginModule required keyTab="{keytab}"; }};\n'
    )
    jaas_file.chmod(0o600)
    options = f"-Djava.security.auth.login.config={jaas_file}"
    found = exposed(tmp_path, "a=b\n", options, with_read_files=with_read_files)
    clients = [("", "mirror.keytab")] if with_read_files else []
    assert found == [("", "users.properties"), *clients]
