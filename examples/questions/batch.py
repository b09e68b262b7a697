"""Answers the questions of a text file, one a line, and writes them as Parquet.

python examples/questions/batch.py questions.txt answers.parquet
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from graphrag_assets import GraphRAG, GraphRAGError
from graphrag_assets.query import Answer, Callbacks, Usage

AT_ONCE = 8
PASSAGE = {
    "document_id": pl.String(),
    "source": pl.String(),
    "start_char": pl.Int64(),
    "end_char": pl.Int64(),
    "quote": pl.String(),
}


class Spending(Callbacks):
    """Adds up what the models cost, also for questions that fail."""

    def __init__(self) -> None:
        self.cost = 0.0

    def on_call(self, category: str, usage: Usage) -> None:
        """Add the cost of a call."""
        self.cost += usage.cost_usd


async def answered(rag: GraphRAG, questions: Sequence[str], timeout: float = 120.0) -> list[Answer]:
    """The answers, in the order of the questions; those that failed are reported, and left out."""
    places, spending = asyncio.Semaphore(AT_ONCE), Spending()

    async def one(question: str) -> Answer | None:
        async with places:
            try:
                return await rag.aask(question, timeout=timeout, callbacks=spending)
            except GraphRAGError as error:
                print(f"{question}: {error}", file=sys.stderr)
                return None

    answers = await asyncio.gather(*map(one, questions))
    print(f"{len(questions)} questions, US$ {spending.cost:.4f}")
    return [answer for answer in answers if answer is not None]


def table(answers: Sequence[Answer]) -> pl.DataFrame:
    """A row per answer, with the passages that it cites."""
    rows = [
        (
            answer.question,
            answer.answer,
            answer.method,
            answer.total_usage.cost_usd,
            [{name: getattr(cited, name) for name in PASSAGE} for cited in answer.citations],
        )
        for answer in answers
    ]
    text, passages = pl.String(), pl.List(pl.Struct(PASSAGE))
    columns = {"question": text, "answer": text, "method": text, "cost": pl.Float64(), "citations": passages}
    return pl.DataFrame(rows, columns, orient="row")


def summary(answers: Sequence[Answer]) -> pl.DataFrame:
    """How many questions each method answered, with how many citations."""
    rows = [(answer.choice.method if answer.choice else answer.method, len(answer.citations)) for answer in answers]
    frame = pl.DataFrame(rows, {"method": pl.String(), "citations": pl.Int64()}, orient="row")
    return frame.group_by("method").agg(pl.len().alias("questions"), pl.col("citations").sum()).sort("method")


def main(questions: Path, target: Path) -> None:
    """Answer the file's questions by the index in GRAPHRAG_DATA."""
    texts = [text for text in questions.read_text(encoding="utf-8").splitlines() if text.strip()]
    with GraphRAG() as rag:
        answers = asyncio.run(answered(rag, texts))
    table(answers).write_parquet(target)
    print(summary(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
