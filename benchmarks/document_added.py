"""CPU seconds of `index` after one document of 2,000 tokens was added, with the test server as model.

    python -m benchmarks.document_added                    # 250,000 and 1,000,000 tokens
    python -m benchmarks.document_added --tokens 250000

Every step is the command `graphrag-assets index` in a process of its own: the first index; the same input twice, of
which the cheaper counts; and with the document. Part of the last is the price of litellm, which is imported with the
first request: `import litellm` by itself is measured at the same moment.
"""

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.index_million_tokens import repetitions, sample_files
from benchmarks.index_with_model import compile_package, cost, import_of_litellm, write_corpus
from graphrag_assets.text.words import cut_text
from tests.model_index import ModelIndex, server_process

ADDED_TOKENS = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, action="append", help="corpus size; may be given several times")
    options = parser.parse_args()
    compile_package()
    shown = Table("tokens", "first index", "nothing due", "document added", "beyond", "`import litellm`", title="CPU s")
    for tokens in options.tokens or [250_000, 1_000_000]:
        shown.add_row(f"{tokens:,}", *(f"{seconds:.1f}" for seconds in measure(tokens)))
    Console().print(shown)


def measure(tokens: int) -> tuple[float, float, float, float, float]:
    """CPU seconds: first index, nothing due, document added, what that takes beyond, and `import litellm`."""
    with tempfile.TemporaryDirectory() as folder, server_process() as url:
        documents = Path(folder) / "input"
        write_corpus(documents, tokens, tokens // 3_000, tokens // 50_000)
        index = ModelIndex(Path(folder) / "index", url, documents, {})
        first = cost(index).cpu_seconds
        idle = min(cost(index).cpu_seconds for _ in range(2))
        texts = repetitions([path.read_text(encoding="utf-8") for path in sample_files()])
        (documents / "batch-0" / "added.md").write_text(cut_text(next(texts), ADDED_TOKENS), encoding="utf-8")
        added = cost(index).cpu_seconds
    return first, idle, added, added - idle, import_of_litellm().cpu_seconds


if __name__ == "__main__":
    main()
