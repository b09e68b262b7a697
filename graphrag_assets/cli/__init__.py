"""The command line: `graphrag-assets index | query | status`."""

from graphrag_assets.cli.main import main

__all__ = ["main"]
