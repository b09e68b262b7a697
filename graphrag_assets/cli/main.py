"""Commands and their options. Each command is implemented in a separate module, imported when it is called."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from graphrag_assets import __version__
from graphrag_assets.cli.terminal import Console, warnings_shown
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.received_signals import signals_noted

EXPORTS = ("graphrag", "csv", "ducklake", "graphml", "gexf", "reports")
METHODS = ("local", "global", "drift", "basic", "lazy", "planned", "ask")
RANKINGS = ("graph", "text", "words", "vectors")


def _filtered(command: Callable[..., None]) -> Callable[..., None]:
    """The options that limit a search; the command gets them as `common_options` takes them."""
    options = (
        click.option("--batch", "batches", multiple=True, help="Search this batch only; may be given several times."),
        click.option("--document", "documents", multiple=True, help="Search this document (title, source or id) only."),
        click.option(
            "--filter",
            "metadata",
            metavar="KEY=VALUE",
            multiple=True,
            help="Search documents with this value of their metadata only; several values of a key are alternatives.",
        ),
        click.option("--as-of", metavar="DATE", help="Search documents of this date or an earlier one only."),
        click.option("--since", metavar="DATE", help="Search documents of this date or a later one only."),
        click.option(
            "--entity-type",
            "entity_types",
            multiple=True,
            help="Only entities of this type; may be given several times.",
        ),
        click.option(
            "--relationship-type",
            "relationship_types",
            multiple=True,
            help="Only relationships of this type; may be given several times.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


_HISTORY = click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='JSON file with earlier turns: [{"role": "user", "content": "…"}, …].',
)


class _Commands(click.Group):
    """A group that shows this package's own errors as one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        with signals_noted() as signals:
            try:
                with masked_errors(), warnings_shown():
                    return super().invoke(ctx)
            except (KeyboardInterrupt, Exception) as error:
                # Python makes a RuntimeError of an interrupt while a class is created, as an import does.
                signal_number = signals and signals.first
                if signal_number or isinstance(error, KeyboardInterrupt):
                    message = "Interrupted. What was committed stays; the next run goes on from there."
                    Console(stderr=True).print(message)
                    sys.exit(128 + (signal_number or signal.SIGINT))
                if not isinstance(error, GraphRAGError):
                    raise
                Console(stderr=True).print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
                sys.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """GraphRAG as a Dagster project: index a folder of documents into DuckDB and ask it questions."""


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option(
    "--from",
    "settings_file",
    type=click.Path(exists=True, path_type=Path),
    help="A settings.yaml of GraphRAG 2 or 3, or its folder, to be translated.",
)
@click.option("--force", is_flag=True, help="Replace an existing .env.")
def init(folder: Path, settings_file: Path | None, force: bool) -> None:
    """Write a commented .env and create the input folder in FOLDER, the current one by default."""
    from graphrag_assets.cli.init import run_init

    run_init(folder, settings_file, force)


@main.command()
@click.option("--input", "input_folder", help="Input folder or URL. Default: GRAPHRAG_INPUT, or data/input.")
@click.option("--batch", "batches", multiple=True, help="Index only this batch; may be given several times.")
@click.option("--all", "everything", is_flag=True, help="Index unchanged batches again, too.")
@click.option("--replace", is_flag=True, help="Replace the contents of the index with another input folder.")
def index(input_folder: str | None, batches: tuple[str, ...], everything: bool, replace: bool) -> None:
    """Index the changed batches of the input folder, refresh the graph and publish."""
    from graphrag_assets.cli.index import run_index

    if not run_index(input_folder, batches, everything, replace):
        sys.exit(1)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dev(arguments: tuple[str, ...]) -> None:
    """Start the Dagster UI of this index on http://127.0.0.1:3000. ARGUMENTS are those of `dagster dev`."""
    from graphrag_assets.defs.dagster_home import make_home
    from graphrag_assets.indexing.index import Index

    home = make_home(Index.from_environment())
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")  # Dagster announces successors of its commands
    workspace = home / "workspace.yaml"
    location = ("-w", str(workspace)) if workspace.exists() else ("-m", "graphrag_assets.definitions")
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *location, *arguments])


@main.command()
@click.argument("method", type=click.Choice(METHODS))
@click.argument("question")
@click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
@click.option(
    "--level",
    "--community-level",
    type=int,
    help="Level of communities, 0 being the coarsest. Global search reads this level (default: 2); local search and "
    "DRIFT use reports down to it (default: all).",
)
@click.option("--dynamic", is_flag=True, help="Global search: select communities by rating their reports.")
@click.option("--hops", type=int, help="Local search and DRIFT: maximum length of paths between entities, 1 to 4.")
@click.option("--budget", type=int, help="Lazy search: maximum number of text units that are tested (default: 100).")
@click.option(
    "--linking",
    type=click.Choice(("names", "model")),
    help="Local, DRIFT, lazy and planned search: how the question is linked to the graph (default: GRAPHRAG_LINKING).",
)
@click.option("--max-usd", type=float, help="Maximum cost of the question in US dollars.")
@click.option("--response-type", help='The form of the answer, such as "a list of 3 to 7 points".')
@_filtered
@_HISTORY
@click.option("--timeout", type=float, help="Timeout of the search in seconds.")
@click.option("--stream/--no-stream", default=None, help="Stream the answer. Default: on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer, its citations and usage as JSON.")
@click.option("--context", is_flag=True, help="Show the context for the model instead of an answer.")
def query(
    method: str,
    question: str,
    path: Path | None,
    level: int | None,
    dynamic: bool,
    hops: int | None,
    budget: int | None,
    linking: str | None,
    max_usd: float | None,
    response_type: str | None,
    history: Path | None,
    timeout: float | None,
    stream: bool | None,
    as_json: bool,
    context: bool,
    **filters: Any,
) -> None:
    """Ask QUESTION by METHOD: local, global, drift, basic, lazy or planned; ask chooses the method by the question."""
    from graphrag_assets.cli.query import Output, common_options, dynamic_option, hops_option, run_query

    given: dict[str, Any] = {"community_level": level, "response_type": response_type, "timeout": timeout}
    given |= (
        {"budget": budget, "linking": linking, "max_usd": max_usd}
        | dynamic_option(method, dynamic)
        | hops_option(method, hops)
    )
    given |= common_options(history, **filters)
    output = Output.CONTEXT if context else Output.JSON if as_json else Output.of(stream)
    run_query(method, question, path, {name: value for name, value in given.items() if value is not None}, output)


@main.command()
@click.argument("asked", nargs=-1)
@click.option("--count", type=int, default=5, show_default=True, help="Maximum number of questions.")
@click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
@_filtered
@_HISTORY
def questions(
    asked: tuple[str, ...],
    count: int,
    path: Path | None,
    history: Path | None,
    **filters: Any,
) -> None:
    """Suggest questions that the data answers: after the questions ASKED so far, or to begin with."""
    from graphrag_assets.cli.query import common_options, run_questions

    run_questions(asked, count, path, common_options(history, **filters))


@main.command()
@click.argument("question")
@click.option("--k", type=int, default=10, show_default=True, help="Number of passages.")
@click.option(
    "--method",
    type=click.Choice(RANKINGS),
    default="graph",
    show_default=True,
    help="How passages are ranked. text: by words and vectors; words: BM25.",
)
@click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
@_filtered
@click.option("--json", "as_json", is_flag=True, help="Print the passages with all columns as JSON.")
def retrieve(
    question: str,
    k: int,
    method: str,
    path: Path | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show the passages that match QUESTION best, with their ranks by words, by vectors and by the graph."""
    from graphrag_assets.cli.query import common_options
    from graphrag_assets.cli.retrieve import run_retrieve

    run_retrieve(question, k, method, path, common_options(None, **filters), as_json)


@main.command()
@click.argument("query", required=False)
@click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "csv", "json")),
    help="How results are printed. Default: a table on a terminal, CSV elsewhere.",
)
def sql(query: str | None, path: Path | None, form: str | None) -> None:
    """Run QUERY, or the queries from standard input, on the current publication, read-only.

    Without a query, the duckdb command opens it where it is installed.
    """
    from graphrag_assets.cli.sql import run_sql

    if not run_sql(query, path, form):
        sys.exit(1)


@main.command()
@click.option("--question", help="Estimate the cost of this question by each method instead.")
@click.option("--budget", type=int, help="Lazy search: maximum number of text units that are tested.")
def plan(question: str | None, budget: int | None) -> None:
    """Estimate the cost of the next `index`: calls, tokens and dollars of the requests that are not in the ledger."""
    from graphrag_assets.cli.plan import show_plan, show_question_plan

    if question is not None:
        show_question_plan(question, budget)
    else:
        show_plan()


@main.command()
@click.option("--texts", type=click.IntRange(min=0), default=0, help="Also extract N text units of the input.")
def doctor(texts: int) -> None:
    """Ask each configured model one tiny question, and show what extraction finds in a few text units."""
    from graphrag_assets.cli.doctor import run_doctor

    if not run_doctor(texts):
        sys.exit(1)


@main.command()
@click.option("--sample", default=30, show_default=True, type=click.IntRange(min=1), help="Text units to tune on.")
@click.option("--types", default="", help='Entity types: "PERSON, SHIP: a vessel"; or changes: "+PORT, -EVENT".')
@click.option("--examples", default=4, show_default=True, type=click.IntRange(min=0), help="Worked examples.")
@click.option(
    "--language",
    default="auto",
    show_default=True,
    help="Language to write in, ISO 639-1. auto: that of nearly all documents; none: that of each document.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Only estimate the cost of the tuning.")
@click.option("--diff", "show_diff", is_flag=True, help="Show how the prompts would change.")
@click.option("--apply", is_flag=True, help="Put the profile in force.")
@click.option("--new-batches", is_flag=True, help="With --apply or --rollback: indexed batches keep their prompts.")
@click.option("--list", "only_list", is_flag=True, help="Only list the versions of the profile.")
@click.option("--rollback", type=click.IntRange(min=0), help="Only put this version in force; 0: the built-in prompts.")
def tune(
    sample: int,
    types: str,
    examples: int,
    language: str,
    only_plan: bool,
    show_diff: bool,
    apply: bool,
    new_batches: bool,
    only_list: bool,
    rollback: int | None,
) -> None:
    """Tune the prompts to the documents of the index, and compare extraction with and without it."""
    from graphrag_assets.cli import tune as command
    from graphrag_assets.indexing.prompt_tuning import TuningOptions

    options = TuningOptions(sample, types, examples, language)
    if only_list:
        command.show_profiles()
    elif rollback is not None:
        command.put_in_force(rollback, new_batches)
    elif only_plan:
        command.plan_tune(options)
    else:
        command.run_tune(options, apply, new_batches, show_diff)


@main.command("cluster-check")
def cluster_check() -> None:
    """Say what this machine lacks to be one of several that index together; status 1 if it lacks anything."""
    from graphrag_assets.cli.doctor import run_cluster_check

    if not run_cluster_check():
        sys.exit(1)


@main.command()
def status() -> None:
    """Show rows per table and batch, skipped input and the current publication."""
    from graphrag_assets.cli.status import show_status

    show_status()


@main.command()
@click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The page. Default: beside the index.")
@click.option("--no-open", is_flag=True, help="Only write the page.")
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="Maximum number of entities on the map; above it, the map shows communities.",
)
def explore(path: Path | None, output: Path | None, no_open: bool, max_nodes: int) -> None:
    """Write the explorer (map, search, texts, communities and claims in one HTML page) and open it."""
    from graphrag_assets.cli.explore import run_explore

    run_explore(path, output, max_nodes, not no_open)


@main.command()
def publications() -> None:
    """List the publications kept for comparison and rollback."""
    from graphrag_assets.cli.publications import show_publications

    show_publications()


@main.command()
@click.argument("before", required=False)
@click.argument("after", required=False)
@click.option("--sql", is_flag=True, help="Print SQL for the DuckDB shell that creates views with one row per change.")
@click.option("--examples", default=5, show_default=True, help="Number of changes shown per kind.")
def diff(before: str | None, after: str | None, sql: bool, examples: int) -> None:
    """Show what changed from publication BEFORE to AFTER; default: the last two.

    Numbers, or: current, previous, newest, oldest.
    """
    from graphrag_assets.cli.publications import show_diff

    show_diff(before, after, sql, examples)


@main.command()
@click.argument("publication")
def rollback(publication: str) -> None:
    """Make PUBLICATION the current one: a number, or previous, newest, oldest."""
    from graphrag_assets.cli.publications import run_rollback

    run_rollback(publication)


@main.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--shared-ledger", is_flag=True, help="Purge a ledger set by GRAPHRAG_LEDGER_URL too.")
def purge(dry_run: bool, shared_ledger: bool) -> None:
    """Purge deleted documents and versions of documents from the ledger, old publications, logs and free space."""
    from graphrag_assets.cli.purge import run_purge

    run_purge(dry_run, shared_ledger)


@main.command("import")
@click.argument("source", type=click.Path(exists=True, path_type=Path), required=False)
@click.option("--name", help="Name of the batch. Default: imported- and the name of the folder.")
@click.option(
    "--vectors-of",
    default="",
    help="Embedding model of the imported vectors; they are used only if it equals the configured model.",
)
@click.option("--remove", "removed", metavar="BATCH", help="Remove an imported batch.")
@click.option("--hand-over", metavar="BATCH", help="Move an imported batch's documents into the input folder.")
@click.option(
    "--document",
    "documents",
    multiple=True,
    help="With --remove or --hand-over: only this document (title, source or id).",
)
def import_(
    source: Path | None,
    name: str | None,
    vectors_of: str,
    removed: str | None,
    hand_over: str | None,
    documents: tuple[str, ...],
) -> None:
    """Import an index of Microsoft GraphRAG, or a graph, from SOURCE; without SOURCE, show what is imported."""
    from graphrag_assets.cli import interop

    if sum(given is not None for given in (source, removed, hand_over)) > 1:
        raise click.UsageError("Give one of SOURCE, --remove and --hand-over.")
    if source is not None:
        interop.run_import(source, name, vectors_of)
    elif removed is not None:
        interop.run_remove(removed, documents)
    elif hand_over is not None:
        interop.run_hand_over(hand_over, documents)
    else:
        interop.show_imports()


@main.command()
@click.argument("kind", metavar="FORMAT", type=click.Choice(EXPORTS))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
@click.option("--batch", "batches", multiple=True, help="Only this batch; may be given several times.")
@click.option(
    "--community", "communities", type=int, multiple=True, help="Only this community and its sub-communities."
)
def export(kind: str, target: Path, path: Path | None, batches: tuple[str, ...], communities: tuple[int, ...]) -> None:
    """Export the publication to TARGET: graphrag, csv or ducklake (a folder), graphml, gexf or reports (a file)."""
    from graphrag_assets.cli.interop import run_export

    run_export(kind, target, path, batches, communities)
