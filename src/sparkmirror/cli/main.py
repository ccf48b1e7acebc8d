"""The `sparkmirror` command. It imports the module of a sub-command when the user runs it.

A MirrorError becomes one sentence on stderr and an exit code: 1 for wrong arguments, a ConfigError
or a RequestError, 2 for every other error. A stack trace always means a bug.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib import metadata

import click

from sparkmirror.cli.garbage_collection import garbage_collection_paused
from sparkmirror.compiled_modules import module_form
from sparkmirror.errors import ConfigError, MirrorError, RequestError

COMMANDS = {
    "check": (
        "sparkmirror.cli.check.command:check",
        "Connect as a file says; see what works and which rights are missing.",
    ),
    "config": (
        "sparkmirror.cli.config.command:config",
        "Explain and check mm2.properties, worker files and connectors.",
    ),
    "copy": ("sparkmirror.cli.copy.command:copy", "Copy topics from one Kafka cluster to another."),
    "demo": ("sparkmirror.cli.demo.command:demo", "Mirror two real clusters, live, and check it."),
    "export": (
        "sparkmirror.cli.strimzi.export_to_strimzi_command:export_group",
        "Print an mm2.properties as a KafkaMirrorMaker2 of Strimzi.",
    ),
    "groups": (
        "sparkmirror.cli.groups_explain:groups",
        "See what a mirror does with consumer groups, and why.",
    ),
    "import": (
        "sparkmirror.cli.strimzi.import_from_strimzi_command:import_group",
        "Write an mm2.properties from a KafkaMirrorMaker2 of Strimzi.",
    ),
    "lab": ("sparkmirror.cli.lab.command:lab", "Run real Kafka clusters on this computer."),
    "run": ("sparkmirror.cli.run.command:run", "Mirror as an mm2.properties says: all its flows."),
    "status": ("sparkmirror.cli.status:status", "Show how a running worker's flows are doing."),
    "transform": (
        "sparkmirror.cli.transform.command:transform",
        "See what transformations make of records.",
    ),
    "worker": ("sparkmirror.cli.worker:worker", "Run a Connect worker that mirrors."),
}
"""The module and object of each command, and its line in `--help`, which imports no command."""

BAD_USAGE = 1
FAILED = 2
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are imported on use, so that `--help` and completion stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command; None if the name is unknown."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        with garbage_collection_paused():
            command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(f"sparkmirror, version {metadata.version('sparkmirror')} ({module_form()})")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Mirror Kafka clusters: a drop-in for MirrorMaker 2."""


def main() -> None:
    """Run the command line and exit. Only this function turns errors into exit codes."""
    try:
        code = cli.main(standalone_mode=False, prog_name="sparkmirror")
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(BAD_USAGE)
    except BrokenPipeError:
        # The reader closed the pipe. Without the redirect, Python's flush at exit fails again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except MirrorError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(BAD_USAGE if isinstance(error, ConfigError | RequestError) else FAILED)
