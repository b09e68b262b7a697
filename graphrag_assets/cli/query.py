"""`query`: ask the published index."""

from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from graphrag_assets.query import GraphRAG, answer_to_markdown


def run_query(method: str, question: str, path: Path | None, context_only: bool) -> None:
    """Print the answer with its citations, or only the context it would be given."""
    console = Console()
    rag = GraphRAG(path)
    if context_only:
        console.print(rag.context(method, question).text, markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(Markdown(answer_to_markdown(rag.search(method, question))))
