"""For tests of your own: indexes of a few texts, and an answerer that replies as told.

from graphrag_assets.testing import FakeAnswerer, index_of

def test_the_answer_is_shown():
    with index_of({"note": "Ada Lovelace met Charles Babbage."}, FakeAnswerer("She met Babbage.")) as rag:
        assert "Babbage" in my_application(rag, "Whom did Ada Lovelace meet?")

def test_the_index_answers_our_questions():
    with GraphRAG("data") as rag:
        assert evaluate(rag, load_questions(Path("questions.jsonl"))).mean("local", "recall@5") >= 0.8

`evaluate` and `load_questions` are those of graphrag_assets.extras.evaluation.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from graphrag_assets.assets.communities import detect_communities
from graphrag_assets.assets.embeddings import embed_texts
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.publication import publication
from graphrag_assets.assets.reports import write_community_reports
from graphrag_assets.assets.scan import scan_input
from graphrag_assets.contracts.answering import NO_ANSWER, PLAIN, Answerer, AnswerOptions, Evidence, Reply
from graphrag_assets.errors import InputError
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings

__all__ = ["FakeAnswerer", "index_of"]


class FakeAnswerer(Answerer):
    """Replies without a model, and records what it was asked.

    Args:
        replies: the reply to every question; or by a text that the question contains, and then `NO_ANSWER` to others.

    Attributes:
        asked: each question with its evidence, in order.
    """

    model = "fake"

    def __init__(self, replies: str | Mapping[str, str]) -> None:
        self.replies = {"": replies} if isinstance(replies, str) else dict(replies)
        self.asked: list[tuple[str, Evidence]] = []

    async def arespond(self, question: str, evidence: Evidence, options: AnswerOptions = PLAIN) -> Reply:
        """Return the reply to the question."""
        self.asked.append((question, evidence))
        return Reply(next((reply for text, reply in self.replies.items() if text in question), NO_ANSWER))


@contextmanager
def index_of(documents: Mapping[str, str], answerer: Answerer | None = None) -> Iterator[GraphRAG]:
    """Yield an index of a few texts by their names, made by the embedded default in a temporary folder; a second or
    two.

    The settings of the environment do not count.

    Raises:
        InputError: a text could not be indexed; the message has the reason.
    """
    with TemporaryDirectory(prefix="graphrag-") as folder:
        root = Path(folder)
        _write(documents, root / "input")
        overrides = {
            name: field.get_default() for name, field in Settings.model_fields.items() if not field.is_required()
        }
        overrides |= {"data": str(root)}
        index = Index(root / "index" / "working.duckdb", overrides)
        for batch in scan_input(index).due:
            index_batch(index, batch, index.models(batch), "test")
        refresh(index, "test")
        _check_all_indexed(index, root / "input")
        with closing(GraphRAG(root / "index", answerer, settings=index.settings)) as rag:
            yield rag


def refresh(index: Index, run_id: str) -> None:
    """Run the stages after the batches in this process. A run of Dagster would take longer than all of them."""
    for stage in (knowledge_graph, detect_communities, write_community_reports, embed_texts, publication):
        stage.update(index, run_id)


def _write(documents: Mapping[str, str], folder: Path) -> None:
    if not documents:
        raise InputError("There are no texts to index.")
    for name, text in documents.items():
        file = folder / (name if Path(name).suffix else f"{name}.txt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _check_all_indexed(index: Index, folder: Path) -> None:
    paths_of_batches = {file.path for batch in index.input.list_batches() for file in batch.files}
    paths = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    problems = [f"{path} is hidden, or its name is that of no batch" for path in paths if path not in paths_of_batches]
    rows = index.working.read(
        "SELECT source, error FROM index_errors WHERE stage = 'load' AND source NOT IN (SELECT source FROM documents)"
    )
    problems += [f"{source}: {error}" for source, error in rows.iter_rows()]
    if problems:
        raise InputError(f"Texts are not indexed: {'; '.join(problems)}.")
