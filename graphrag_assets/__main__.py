"""The command line as a program: `graphrag-assets`, or `python -m graphrag_assets`."""

import sys


def run() -> None:
    """Run the command line; the process ends with its status, also if Ctrl-C comes while it is imported."""
    try:
        from graphrag_assets import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
