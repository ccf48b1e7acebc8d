"""SASL, as every Kafka client speaks it: the `sasl.*` keys in Kafka's order."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import Range
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.oauthbearer import OAUTHBEARER

_KERBEROS: Final = ConfigDef(
    ConfigKey(
        "sasl.kerberos.service.name",
        Type.STRING,
        None,
        MEDIUM,
        "Kerberos name of the brokers' service, usually kafka. Needed for GSSAPI unless the JAAS "
        "line says serviceName.",
    ),
    ConfigKey(
        "sasl.kerberos.kinit.cmd",
        Type.STRING,
        "/usr/bin/kinit",
        LOW,
        "Path of the kinit program that renews a Kerberos ticket.",
    ),
    ConfigKey(
        "sasl.kerberos.ticket.renew.window.factor",
        Type.DOUBLE,
        0.8,
        LOW,
        "Part of a Kerberos ticket's life after which it is renewed, between 0 and 1.",
    ),
    ConfigKey(
        "sasl.kerberos.ticket.renew.jitter",
        Type.DOUBLE,
        0.05,
        LOW,
        "Random part added to the time of a ticket's renewal, so that many clients do not renew "
        "at once.",
    ),
    ConfigKey(
        "sasl.kerberos.min.time.before.relogin",
        Type.LONG,
        60000,
        LOW,
        "Shortest time between two renewals of a Kerberos ticket, in milliseconds.",
    ),
)

_LOGIN: Final = ConfigDef(
    ConfigKey(
        "sasl.login.refresh.window.factor",
        Type.DOUBLE,
        0.8,
        LOW,
        "Part of a token's life after which a new one is fetched. Lower it when fetching is slow "
        "or fails at times.",
        validator=Range(0.5, 1.0),
    ),
    ConfigKey(
        "sasl.login.refresh.window.jitter",
        Type.DOUBLE,
        0.05,
        LOW,
        "Random part of a token's life added to the moment of its refresh, so that many clients "
        "do not ask at once.",
        validator=Range(0.0, 0.25),
    ),
    ConfigKey(
        "sasl.login.refresh.min.period.seconds",
        Type.SHORT,
        60,
        LOW,
        "Shortest time to keep a token before it is refreshed, in seconds. Ignored together with "
        "the buffer when both exceed the token's life.",
        validator=Range(0, 900),
    ),
    ConfigKey(
        "sasl.login.refresh.buffer.seconds",
        Type.SHORT,
        300,
        LOW,
        "How long before a token's end it must have been refreshed, in seconds.",
        validator=Range(0, 3600),
    ),
    ConfigKey(
        "sasl.mechanism",
        Type.STRING,
        "GSSAPI",
        MEDIUM,
        "How to prove who one is: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM "
        "or GSSAPI (Kerberos). Must be one that the brokers offer.",
    ),
    ConfigKey(
        "sasl.jaas.config",
        Type.PASSWORD,
        None,
        MEDIUM,
        "Login module and its options in Java's JAAS notation, ending with a semicolon; holds "
        "user and password for PLAIN and SCRAM. Keep secrets out of it with a "
        "${file:...} variable.",
    ),
    ConfigKey(
        "sasl.client.callback.handler.class",
        Type.CLASS,
        None,
        MEDIUM,
        "Java class that answers a mechanism's questions. Needed for AWS_MSK_IAM "
        "(IAMClientCallbackHandler); the name decides which built-in part is used.",
    ),
    ConfigKey(
        "sasl.login.callback.handler.class",
        Type.CLASS,
        None,
        MEDIUM,
        "Java class that fetches tokens for OAUTHBEARER. The name decides which built-in token "
        "provider is used.",
    ),
    ConfigKey(
        "sasl.login.class",
        Type.CLASS,
        None,
        MEDIUM,
        "Java class that logs in and keeps the login fresh. Only Kafka's own is understood; "
        "leave it out.",
    ),
    ConfigKey(
        "sasl.login.connect.timeout.ms",
        Type.INT,
        None,
        LOW,
        "How long to wait for a connection to the server that hands out tokens, in milliseconds. "
        "OAUTHBEARER only.",
    ),
    ConfigKey(
        "sasl.login.read.timeout.ms",
        Type.INT,
        None,
        LOW,
        "How long to wait for the answer of the server that hands out tokens, in milliseconds. "
        "OAUTHBEARER only.",
    ),
    ConfigKey(
        "sasl.login.retry.backoff.max.ms",
        Type.LONG,
        10000,
        LOW,
        "Longest pause between attempts to fetch a token, in milliseconds. OAUTHBEARER only.",
    ),
    ConfigKey(
        "sasl.login.retry.backoff.ms",
        Type.LONG,
        100,
        LOW,
        "First pause after a failed attempt to fetch a token, in milliseconds; it doubles up to "
        "sasl.login.retry.backoff.max.ms. OAUTHBEARER only.",
    ),
)

CLIENT_SASL: Final = _KERBEROS + _LOGIN + OAUTHBEARER
