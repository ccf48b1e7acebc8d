"""SASL, as every Kafka client uses it: the `sasl.*` keys in Kafka's order."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import Range
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.client.oauthbearer import OAUTHBEARER
from sparkmirror.config.tables.no_effect_reasons import (
    JAVA_CLASS,
    KERBEROS,
)

_KERBEROS: Final = ConfigDef(
    ConfigKey(
        "sasl.kerberos.service.name",
        Type.STRING,
        None,
        MEDIUM,
        "The name of the brokers' Kerberos service, often kafka.",
    ),
    ConfigKey(
        "sasl.kerberos.kinit.cmd",
        Type.STRING,
        "/usr/bin/kinit",
        LOW,
        KERBEROS,
    ),
    ConfigKey(
        "sasl.kerberos.ticket.renew.window.factor",
        Type.DOUBLE,
        0.8,
        LOW,
        KERBEROS,
    ),
    ConfigKey(
        "sasl.kerberos.ticket.renew.jitter",
        Type.DOUBLE,
        0.05,
        LOW,
        KERBEROS,
    ),
    ConfigKey(
        "sasl.kerberos.min.time.before.relogin",
        Type.LONG,
        60000,
        LOW,
        KERBEROS,
    ),
)

_LOGIN: Final = ConfigDef(
    ConfigKey(
        "sasl.login.refresh.window.factor",
        Type.DOUBLE,
        0.8,
        LOW,
        "The part of its lifetime after which a token is renewed.",
        validator=Range(0.5, 1.0),
    ),
    ConfigKey(
        "sasl.login.refresh.window.jitter",
        Type.DOUBLE,
        0.05,
        LOW,
        "The largest random part of the lifetime that is added to that.",
        validator=Range(0.0, 0.25),
    ),
    ConfigKey(
        "sasl.login.refresh.min.period.seconds",
        Type.SHORT,
        60,
        LOW,
        "The shortest time between two renewals of a token with a long lifetime, in seconds.",
        validator=Range(0, 900),
    ),
    ConfigKey(
        "sasl.login.refresh.buffer.seconds",
        Type.SHORT,
        300,
        LOW,
        "The seconds before its end by which a token with a long lifetime is renewed.",
        validator=Range(0, 3600),
    ),
    ConfigKey(
        "sasl.mechanism",
        Type.STRING,
        "GSSAPI",
        MEDIUM,
        "How a client logs in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM or "
        "GSSAPI. Must be one that the brokers offer.",
    ),
    ConfigKey(
        "sasl.jaas.config",
        Type.PASSWORD,
        None,
        MEDIUM,
        "Login module and its options in Java's JAAS notation, ending with a semicolon; holds "
        "user and password for PLAIN and SCRAM. Without it, the section KafkaClient of the JAAS "
        "file that KAFKA_OPTS names is used. Keep secrets out of it with a ${file:...} variable.",
    ),
    ConfigKey(
        "sasl.client.callback.handler.class",
        Type.CLASS,
        None,
        MEDIUM,
        JAVA_CLASS,
    ),
    ConfigKey(
        "sasl.login.callback.handler.class",
        Type.CLASS,
        None,
        MEDIUM,
        "Where tokens come from, by the name of the Java class: "
        "OAuthBearerLoginCallbackHandler, OAuthBearerUnsecuredLoginCallbackHandler, AWS's "
        "IAMOAuthBearerLoginCallbackHandler or Strimzi's JaasClientOauthLoginCallbackHandler. Or "
        "module:Class of a Python class.",
        accepts_python_class=True,
    ),
    ConfigKey(
        "sasl.login.class",
        Type.CLASS,
        None,
        MEDIUM,
        JAVA_CLASS,
    ),
    ConfigKey(
        "sasl.login.connect.timeout.ms",
        Type.INT,
        None,
        LOW,
        "The milliseconds that a connection to a token endpoint may take; 10 seconds if unset.",
    ),
    ConfigKey(
        "sasl.login.read.timeout.ms",
        Type.INT,
        None,
        LOW,
        "The milliseconds that a token endpoint may be silent; 10 seconds if unset.",
    ),
    ConfigKey(
        "sasl.login.retry.backoff.max.ms",
        Type.LONG,
        10000,
        LOW,
        "The longest pause between attempts to get a token, in milliseconds.",
    ),
    ConfigKey(
        "sasl.login.retry.backoff.ms",
        Type.LONG,
        100,
        LOW,
        "The pause after the first failed attempt, in milliseconds; it doubles with each one.",
    ),
)

CLIENT_SASL: Final = _KERBEROS + _LOGIN + OAUTHBEARER
