"""The command line as a program: `graphrag-assets`, or `graphrag-assets`."""

from graphrag_assets import cli


def run() -> None:
    """Run the command line; the process ends with its status."""
    cli.main()


if __name__ == "__main__":
    run()
