"""A process that asks its first questions from many threads at the same time.

`python -m tests.query.first_questions INDEX METHOD [METHOD …]` prints the errors as a JSON list. Every thread has a
method, and most of them share a `GraphRAG`.
"""

import json
import sys
import threading

from graphrag_assets.query import GraphRAG

THREADS = 36


def main(index: str, *methods: str) -> None:
    common, ready = GraphRAG(index), threading.Barrier(THREADS)
    errors: list[str] = []

    def ask(number: int) -> None:
        ready.wait()
        try:
            rag = common if number % 8 else GraphRAG(index)
            getattr(rag, methods[number % len(methods)])("Who commanded the Niagara?")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(errors))


if __name__ == "__main__":
    main(*sys.argv[1:])
