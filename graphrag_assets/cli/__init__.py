"""The command line: `python -m graphrag_assets index | query | status`."""

from graphrag_assets.cli.main import main

__all__ = ["main"]
