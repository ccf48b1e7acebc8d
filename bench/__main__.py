"""`make bench`: compares sparkmirror with Java MirrorMaker 2; also runs micro benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from bench.bench_run import BenchRun
from bench.benchmark import PARTS, BenchmarkPlan, run_benchmark
from bench.dedicated import WORKLOAD_NAMES as DEDICATED_NAMES
from bench.document import write_document
from bench.report_rows import build_rows
from bench.report_tables import markdown_tables
from bench.result_files import ResultFile, read_results
from bench.scale import FULL, QUICK
from bench.steady import WORKLOAD_NAMES as STEADY_NAMES
from bench.systems import System
from bench.throughput import WORKLOADS
from bench.transforms import WORKLOAD_NAMES

KNOWN_WORKLOADS = (
    *(one.name for one in WORKLOADS),
    *WORKLOAD_NAMES,
    *STEADY_NAMES,
    *DEDICATED_NAMES,
)
MICROBENCHMARKS = ("batches", "record_ages", "run_maps", "small_batches", "transforms", "wire")
INTERRUPTED = 130
_FILES = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)


def _names(text: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise click.BadParameter(f"there is no {name!r}; there are {', '.join(known)}")
    return names


@click.group(invoke_without_command=True)
@click.option("--quick", is_flag=True, help="One short round: a look, not a result.")
@click.option("--only", default="", metavar="PART,...", help=f"Some of {', '.join(PARTS)}.")
@click.option(
    "--workloads",
    default="",
    metavar="NAME,...",
    help=f"For throughput, transforms, steady and dedicated, some of {', '.join(KNOWN_WORKLOADS)}.",
)
@click.option("--who", default="", metavar="NAME,...", help=f"Some of {', '.join(System)}.")
@click.option("--rounds", type=click.IntRange(min=1), help="Another number of rounds.")
@click.option("--name", default="", help="What the file of results is called.")
@click.pass_context
def main(ctx: click.Context, /, quick: bool, rounds: int | None, name: str, **chosen: str) -> None:
    """Run the benchmarks side by side and show the table."""
    if ctx.invoked_subcommand:
        return
    scale = QUICK if quick else FULL
    scale = replace(scale, rounds=rounds or scale.rounds)
    plan = BenchmarkPlan(
        parts=_names(chosen["only"], list(PARTS)) or list(PARTS),
        scale=scale,
        workloads=frozenset(_names(chosen["workloads"], KNOWN_WORKLOADS)),
        systems=frozenset(map(System, _names(chosen["who"], list(System)) or System)),
    )
    result_file = ResultFile.new(name or ("quick" if quick else "full"), scale)
    if not run_benchmark(plan, result_file):
        ctx.exit(INTERRUPTED)


@main.command()
@click.argument("names", nargs=-1, type=click.Choice(MICROBENCHMARKS))
def micro(names: tuple[str, ...]) -> None:
    """Run micro benchmarks: batches, record ages, run maps, small batches, transforms, wire."""
    for name in names or MICROBENCHMARKS:
        click.echo(f"== {name}")
        importlib.import_module(f"bench.micro.{name}").main()


@main.command()
@_FILES
def show(files: tuple[Path, ...]) -> None:
    """Print the table of files of results, in Markdown."""
    click.echo(markdown_tables(build_rows(_runs(files))))


@main.command()
@_FILES
def document(files: tuple[Path, ...]) -> None:
    """Put the table and the picture of files of results into docs/benchmarks.md."""
    write_document(_runs(files))


def _runs(files: tuple[Path, ...]) -> list[BenchRun]:
    return [run for file in files for run in read_results(file)[1]]


if __name__ == "__main__":
    main(prog_name="python -m bench")
