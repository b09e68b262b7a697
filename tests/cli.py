"""The command line, run in this process: importing Dagster takes longer than most commands."""

import os

from click.testing import CliRunner

from graphrag_assets.cli import main


def run_command(*arguments: str, status: int = 0, **environment: str) -> str:
    """The output of a command, which must end with `status`; `environment` holds only while it runs."""
    # `index --input` sets GRAPHRAG_INPUT. Named here, it is restored.
    variables = {"COLUMNS": "200", "DAGSTER_HOME": "", "GRAPHRAG_INPUT": os.environ.get("GRAPHRAG_INPUT")}
    result = CliRunner(env=variables | environment).invoke(main, arguments)
    assert result.exit_code == status, f"{result.output}{result.exception!r}"
    return result.output
