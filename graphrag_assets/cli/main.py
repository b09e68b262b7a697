"""The group of all commands. A command is in a module of its own, which is imported when it is called or listed."""

import importlib
import signal
import sys

import click
from rich.text import Text

from graphrag_assets import __version__
from graphrag_assets.cli.terminal import Console, warnings_shown
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.received_signals import signals_noted
from graphrag_assets.settings import unknown_variables

_PLACES = {
    "dev": "dev.dev",
    "doctor": "doctor.doctor",
    "explore": "explore.explore",
    "export": "interop.export",
    "import": "interop.import_",
    "index": "index.index",
    "init": "init.init",
    "plan": "plan.plan",
    "publications": "publications.publications",
    "query": "query.query",
    "retrieve": "retrieve.retrieve",
    "sql": "sql.sql",
    "status": "status.status",
    "tune": "tune.tune",
}
"""Module and function of each command."""


class _Commands(click.Group):
    """A group that shows this package's own errors as one line instead of a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLACES:
            return None
        module, _, function = _PLACES[cmd_name].partition(".")
        command: click.Command = getattr(importlib.import_module(f"graphrag_assets.cli.{module}"), function)
        return command

    def invoke(self, ctx: click.Context) -> object:
        with signals_noted() as signals:
            try:
                with masked_errors(), warnings_shown():
                    for warning in unknown_variables():
                        Console(stderr=True).say(f"Warning: {warning}")
                    return super().invoke(ctx)
            except (KeyboardInterrupt, Exception) as error:
                # Python makes a RuntimeError of an interrupt while a class is created, as an import does.
                signal_number = signals and signals.first
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
