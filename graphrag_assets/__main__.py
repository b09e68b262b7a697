"""The command line as a program: `python -m graphrag_assets`, or `graphrag-assets`."""

import atexit
import os
import sys

_status = 1


@atexit.register  # before anything else is imported, so that it comes last
def _leave() -> None:
    """End the process without taking the interpreter apart object by object, which takes 0.4 s of CPU.

    All else that is to be done at the end is done, threads are waited for. It also keeps what DuckDB 2.0's bindings
    print when they are taken apart, pages of "leaked function", off the screen.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where there is none, as in a service without a log
        stream.flush()
    os._exit(_status)


def run() -> None:
    """Run the command line; the process ends with its status."""
    global _status
    from graphrag_assets.cli import main

    try:
        main()
    except SystemExit as ended:
        _status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise


if __name__ == "__main__":
    run()
