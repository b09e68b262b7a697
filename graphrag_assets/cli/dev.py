"""`dev`: the Dagster UI of the index."""

import os
import sys

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dev(arguments: tuple[str, ...]) -> None:
    """Start the Dagster UI of this index on http://127.0.0.1:3000. ARGUMENTS are those of `dagster dev`."""
    from graphrag_assets.assets.dagster_home import make_home  # imports Dagster
    from graphrag_assets.settings import Settings

    home = make_home(Settings.load())
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")  # Dagster announces successors of its commands
    workspace = home / "workspace.yaml"
    location = ("-w", str(workspace)) if workspace.exists() else ("-m", "graphrag_assets.definitions")
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *location, *arguments])
