"""The command line as a program: `graphrag-assets`, or `python -m graphrag_assets`."""

import gc
import sys

GARBAGE_THRESHOLD = 100_000
"""Objects made between two searches for garbage. Modules are none: with Python's 700, searching takes a quarter of the
import of litellm and a tenth of a short command."""


def run() -> None:
    """Run the command line; the process ends with its status, also if Ctrl-C comes while it is imported."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        from graphrag_assets import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
