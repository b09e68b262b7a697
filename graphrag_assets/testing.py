"""For tests of your own: indexes of a few texts, an answerer that replies as told, and recall that must be reached.

from graphrag_assets.testing import FakeAnswerer, assert_recall, index_of

def test_the_answer_is_shown():
    with index_of({"note": "Ada Lovelace met Charles Babbage."}, FakeAnswerer("She met Babbage.")) as rag:
        assert "Babbage" in my_application(rag, "Whom did Ada Lovelace meet?")

def test_the_index_answers_our_questions():
    with GraphRAG("data") as rag:
        assert_recall(rag, "questions.jsonl", at_5=0.8)
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from graphrag_assets.assets.communities import update_communities
from graphrag_assets.assets.embeddings import update_candidates, update_embeddings
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.publication import update_publication
from graphrag_assets.assets.reports import update_reports
from graphrag_assets.assets.scan import scan_input
from graphrag_assets.contracts.answering import NO_ANSWER, PLAIN, Answerer, AnswerOptions, Evidence, Reply
from graphrag_assets.errors import InputError, InvalidOption
from graphrag_assets.extras.evaluation.questions import load_questions, place
from graphrag_assets.extras.evaluation.retrieval import measure
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings

__all__ = ["FakeAnswerer", "assert_recall", "index_of"]


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
    knowledge_graph(index, index.models(run_id=run_id), run_id)
    update_communities(index, run_id)
    update_reports(index, index.models(run_id=run_id), run_id)
    update_embeddings(index, index.models(run_id=run_id), run_id)
    update_candidates(index, run_id)
    update_publication(index, run_id)


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


def assert_recall(
    rag: GraphRAG,
    questions: str | Path,
    *,
    at_2: float | None = None,
    at_5: float | None = None,
    at_10: float | None = None,
    method: str = "local",
) -> None:
    """Assert the mean recall of a method over the questions of a file (docs/quality.md has its format).

    A question whose gold passage is not in the publication counts as 0. A file with a line that cannot be used fails.

    Raises:
        AssertionError: a recall is lower; the message names the questions whose passages were not found.
        InputError: the file cannot be read.
        InvalidOption: no recall is given.
    """
    wanted = {f"recall@{k}": share for k, share in ((2, at_2), (5, at_5), (10, at_10)) if share is not None}
    if not wanted:
        raise InvalidOption("Give the recall that must be reached: at_2, at_5 or at_10.")
    loaded = load_questions(Path(questions))
    answerable = [each.question for each in loaded.questions if each.gold]
    placed, unplaced = place(rag.index.reader(), loaded.questions)
    scores = list(measure(rag, placed, [method]))
    problems = loaded.problems + unplaced
    for metric, share in wanted.items():
        values = {score.question: score.value for score in scores if score.metric == metric}
        reached = sum(values.values()) / max(len(answerable), 1)
        if reached < share:
            missed = [question for question in answerable if values.get(question, 0.0) < 1]
            problems.append(
                f"{metric} by {method} is {reached:.3f}, less than {share:g}. Not found: {'; '.join(missed)}"
            )
    assert not problems, "\n".join(problems)
