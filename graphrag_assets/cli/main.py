"""The group of all commands. A command is in a module of its own, which is imported when it is called or listed."""

import importlib
import signal
import sys

import click
from rich.text import Text

from graphrag_assets import __version__
from graphrag_assets.cli.terminal import Console, warnings_shown
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.runtime.interruption import first_signal, signals_noted
from graphrag_assets.runtime.tracing import annotate, span, start_tracing
from graphrag_assets.settings import unknown_variables

_PLACES: dict[str, str | dict[str, str]] = {
    "dev": "cli.init.dev",
    "doctor": "cli.status.doctor",
    "evaluate": "extras.evaluation.command.evaluate",
    "import": "extras.interop.command.import_",
    "index": {
        "run": "cli.index.index",
        "plan": "extras.cost_preview.preview.plan",
        "tune": "extras.tuning.command.tune",
    },
    "init": "cli.init.init",
    "publications": {
        "list": "cli.publications.list_",
        "diff": "cli.publications.diff",
        "rollback": "cli.publications.rollback",
        "explore": "extras.explorer.page.explore",
        "export": "extras.interop.command.export",
        "purge": "extras.purge.purge_command",
    },
    "query": "cli.query.query",
    "resolve": {
        "list": "extras.resolution.command.list_",
        **{name: f"extras.resolution.command.{name}" for name in ("accept", "reject", "split", "undo", "judge")},
    },
    "serve": "extras.server.command.serve",
    "sql": "cli.sql.sql",
    "status": "cli.status.status",
}
"""Module and function of each command, or those of its subcommands, of which the first is the default."""
_GROUPS = {
    "index": "Index the changed batches of the input folder, refresh the graph and publish; plan what that costs; or "
    "tune the prompts to the documents.",
    "publications": "List, compare, switch, explore and export publications, or purge deleted documents from them.",
    "resolve": "Decide which names are one thing: list candidates, accept, reject, split, undo, or let a model judge.",
}


def _command(place: str) -> click.Command:
    module, _, function = place.rpartition(".")
    command: click.Command = getattr(importlib.import_module(f"graphrag_assets.{module}"), function)
    return command


class _Subcommands(click.Group):
    """Subcommands that are imported when they are called; without the name of one, the first is meant."""

    def __init__(self, name: str, places: dict[str, str]) -> None:
        super().__init__(name, help=f"{_GROUPS[name]} Default: {next(iter(places))}.")
        self._places = places
        self._default = next(iter(places))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self._places, *ctx.help_option_names):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the default subcommand, too, which need not be named."""
        _command(self._places[self._default]).format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(self._places[cmd_name]) if cmd_name in self._places else None


class _Commands(click.Group):
    """A group that shows this package's own errors as one line instead of a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _PLACES.get(cmd_name)
        if place is None:
            if meant := [f"{name} {cmd_name}" for name in _GROUPS if cmd_name in _PLACES[name]]:
                raise click.UsageError(f"No such command {cmd_name!r}. Did you mean {' or '.join(map(repr, meant))}?")
            return None
        return _command(place) if isinstance(place, str) else _Subcommands(cmd_name, place)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        annotate({"graphrag.command": name or ""})
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        with signals_noted():
            try:
                with masked_errors(), warnings_shown():
                    for warning in unknown_variables():
                        Console(stderr=True).say(f"Warning: {warning}")
                    start_tracing()
                    with span("graphrag-assets"):
                        return super().invoke(ctx)
            except (KeyboardInterrupt, Exception) as error:
                # Python makes a RuntimeError of an interrupt while a class is created, as an import does.
                signal_number = first_signal()
                if signal_number or isinstance(error, KeyboardInterrupt):
                    message = "Interrupted. What was committed stays; the next run continues from there."
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
