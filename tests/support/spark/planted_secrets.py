"""Secrets planted in every place where an operator may write one, and where they may be found.

Each secret is a random text of its own, so a text that has one of them shows which place leaks.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from sparkmirror.lab.properties_file import write_properties

JAAS_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
PROVIDERS = "org.apache.kafka.common.config.provider"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
UI_PORTS = 16
"""How many ports Spark tries for its web UI."""
UI_PAGES = ("jobs", "stages", "storage", "environment", "executors", "SQL", "StreamingQuery")
API = ("environment", "allexecutors", "jobs", "stages", "sql")

FROM_ENVIRONMENT = ("env provider",)
"""The environment of the processes that resolve it has this one: the operator put it there."""
INLINE = ("inline JAAS option", "inline key password")
"""REST answers about the config and the config topic have these, as with Connect."""


class PlantedSecrets:
    """Random secrets by name, the files that hold them, and the settings that name the files."""

    def __init__(self, directory: Path) -> None:
        """Write the files. This directory is not searched."""
        self.values: dict[str, str] = {}
        self._directory = directory
        self.ui_port = _free_port()
        write_properties(
            directory / "secrets.properties",
            {
                "keystore": self.plant("key store password"),
                "key": self.plant("key password"),
                "truststore": self.plant("trust store password"),
                "oauth": self.plant("OAuth client secret"),
                "assertion": self.plant("OAuth assertion passphrase"),
                "s3": self.plant("Spark setting: fs.s3a.secret.key"),
                "s3-token": self.plant("Spark setting: fs.s3a.session.token"),
                "scram": self.plant("JAAS option"),
                "scram-token": self.plant("JAAS option of a delegation token"),
            },
        )
        (directory / "dir").mkdir()
        (directory / "dir" / "password").write_text(self.plant("dir provider"))
        write_properties(
            directory / "users.properties",
            {"alice": self.plant("REST user"), "bob": self.plant("another REST user")},
        )
        self.plant_as(
            "Basic credentials",
            base64.b64encode(f"alice:{self.values['REST user']}".encode()).decode(),
        )
        write_properties(
            directory / "tokens.properties",
            {"ci": self.plant("bearer token"), "console": self.plant("another bearer token")},
        )
        jaas = f'KafkaConnect {{ {JAAS_MODULE} required file="{directory}/users.properties"; }};'
        (directory / "connect-jaas.conf").write_text(jaas)
        for file in directory.rglob("*"):
            file.chmod(0o700 if file.is_dir() else 0o600)

    def plant(self, name: str) -> str:
        """Return a new secret."""
        return self.plant_as(name, f"planted-{secrets.token_hex(12)}")

    def plant_as(self, name: str, value: str) -> str:
        """Look for this text, too."""
        self.values[name] = value
        return value

    def worker_properties(self, logs: Path) -> dict[str, str]:
        """Settings of a worker that hold, or name, the secrets."""
        file = f"${{file:{self._directory}/secrets.properties"
        return {
            "config.providers": "file,env,dir",
            "config.providers.file.class": f"{PROVIDERS}.FileConfigProvider",
            "config.providers.env.class": f"{PROVIDERS}.EnvVarConfigProvider",
            "config.providers.dir.class": f"{PROVIDERS}.DirectoryConfigProvider",
            "rest.extension.classes": EXTENSION,
            "sparkmirror.rest.bearer.tokens.file": f"{self._directory}/tokens.properties",
            "spark.hadoop.fs.s3a.secret.key": f"{file}:s3}}",
            "spark.hadoop.fs.s3a.session.token": f"{file}:s3-token}}",
            "spark.ssl.keyPassword": self.plant("inline Spark setting: ssl.keyPassword"),
            "spark.ui.enabled": "true",
            "spark.ui.port": str(self.ui_port),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": logs.as_uri(),
            "spark.sql.parquet.compression.codec": "uncompressed",
        }

    def environment(self) -> dict[str, str]:
        """The environment of the worker."""
        flag = f"-Djava.security.auth.login.config={self._directory}/connect-jaas.conf"
        return {
            **os.environ,
            "KAFKA_OPTS": flag,
            "PLANTED_PASSWORD": self.plant("env provider"),
        }

    def connector_properties(self, prefix: str) -> dict[str, str]:
        """Client properties of a connector that have no effect on its listener, by placeholder."""
        file = f"${{file:{self._directory}/secrets.properties"
        jaas = f'{SCRAM_MODULE} required username="m" password="{file}:scram}}"'
        return {
            f"{prefix}ssl.keystore.password": f"{file}:keystore}}",
            f"{prefix}ssl.key.password": f"{file}:key}}",
            f"{prefix}ssl.truststore.password": f"{file}:truststore}}",
            f"{prefix}sasl.oauthbearer.client.credentials.client.secret": f"{file}:oauth}}",
            f"{prefix}sasl.oauthbearer.assertion.private.key.passphrase": f"{file}:assertion}}",
            f"{prefix}sasl.jaas.config": f'{jaas} tokenauth="{file}:scram-token}}";',
            f"{prefix}ssl.keystore.key": "${env:PLANTED_PASSWORD}",
            f"{prefix}ssl.keystore.certificate.chain": f"${{dir:{self._directory}/dir:password}}",
        }

    def inline_properties(self, prefix: str) -> dict[str, str]:
        """Client properties of a connector with the secrets themselves, as over REST."""
        module = f"{SCRAM_MODULE} required username=m"
        option = self.plant("inline JAAS option")
        return {
            f"{prefix}sasl.jaas.config": f'{module} password="{option}";',
            f"{prefix}ssl.key.password": self.plant("inline key password"),
        }

    def found_in(self, texts: Mapping[str, bytes], names: Iterable[str]) -> list[str]:
        """Return which of these secrets are in which texts."""
        return [
            f"{name} in {where}"
            for name in names
            for where, text in texts.items()
            if self.values[name].encode() in text
        ]

    def web_ui_pages(self) -> dict[str, bytes]:
        """The pages of the web UI of each driver, and what their scripts load from Spark's API."""
        pages: dict[str, bytes] = {}
        for port in range(self.ui_port, self.ui_port + UI_PORTS):
            address = f"http://127.0.0.1:{port}"
            try:
                [application] = json.loads(_read_page(f"{address}/api/v1/applications"))
            except URLError:
                continue
            api = f"{address}/api/v1/applications/{application['id']}"
            urls = [f"{address}/{page}/" for page in UI_PAGES] + [f"{api}/{part}" for part in API]
            pages |= {url: _read_page(url) for url in urls}
        return pages


def _read_page(url: str) -> bytes:
    with urlopen(url, timeout=50) as answer:  # noqa: S310  our own Spark
        content: bytes = answer.read()
        return content


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
