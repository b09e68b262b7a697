"""`dev`: the Dagster UI and daemon of this index, with runs and partitions of its own."""

import os
import sys

from graphrag_assets.defs.dagster_home import make_home
from graphrag_assets.indexing.index import Index


def run_dev(arguments: tuple[str, ...]) -> None:
    """Replace this process by `dagster dev` with `arguments`, in the Dagster home of the index.

    Raises:
        SettingsError: a setting has a bad value.
    """
    home = make_home(Index.from_environment())
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")  # Dagster announces successors of its commands
    workspace = home / "workspace.yaml"
    arguments = (*(("-w", str(workspace)) if workspace.exists() else ("-m", "graphrag_assets.definitions")), *arguments)
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *arguments])
