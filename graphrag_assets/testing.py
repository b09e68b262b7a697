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

from graphrag_assets.contracts.answering import NO_ANSWER, PLAIN, Answerer, AnswerOptions, BaseAnswerer, Evidence, Reply
from graphrag_assets.errors import InputError
from graphrag_assets.extras.evaluation.bootstrap import mean
from graphrag_assets.extras.evaluation.questions import load_questions, place
from graphrag_assets.extras.evaluation.retrieval import measure
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import scan_input
from graphrag_assets.indexing.stage_runner import StageRunner
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings

_NOT_INDEXED = """
SELECT concat(source, ': ', error, '. ', hint) AS reason FROM index_errors
WHERE source NOT IN (SELECT source FROM documents) ORDER BY ALL
"""

__all__ = ["FakeAnswerer", "assert_recall", "index_of"]


class FakeAnswerer(BaseAnswerer):
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
        """The reply to the question."""
        self.asked.append((question, evidence))
        return Reply(next((reply for text, reply in self.replies.items() if text in question), NO_ANSWER))


@contextmanager
def index_of(documents: Mapping[str, str], answerer: Answerer | None = None) -> Iterator[GraphRAG]:
    """An index of a few texts by their names, made by the embedded default in a temporary folder; a second or two.

    The settings of the environment do not count.

    Raises:
        InputError: there is no text, or one of them is not indexed; the message has the reason.
    """
    if not documents:
        raise InputError("There is no text to index.")
    with TemporaryDirectory(prefix="graphrag-") as temporary:
        root = Path(temporary)
        folder, files = root / "input", dict[str, Path]()
        for name, text in documents.items():
            files[name] = file = _file_of(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        overrides = {
            name: field.get_default() for name, field in Settings.model_fields.items() if not field.is_required()
        }
        overrides |= {"data": str(root)}
        index = Index(root / "index" / "working.duckdb", overrides)
        listed = {file.path for batch in index.input.listed() for file in batch.files}
        if ignored := [name for name, file in files.items() if file.relative_to(folder).as_posix() not in listed]:
            raise InputError(f"Texts whose names indexing ignores: {', '.join(map(repr, ignored))}. Rename them.")
        runner = StageRunner(index)
        runs = [*runner.index(scan_input(index).due)]
        runs.append(runner.refresh(index))
        failed = [run.reason for run in runs if run.reason] or index.working.read(_NOT_INDEXED)["reason"].to_list()
        if failed:
            raise InputError(f"The texts cannot be indexed: {' '.join(failed)}")
        with closing(GraphRAG(root / "index", answerer, settings=index.settings)) as rag:
            yield rag


def _file_of(folder: Path, name: str) -> Path:
    """The file of a text in the input folder."""
    file = folder / (name if Path(name).suffix else f"{name}.txt")
    if ".." in file.parts or not file.is_relative_to(folder) or file.exists():
        raise InputError(f"The text {name!r} needs another name: a path of its own within the input folder.")
    return file


def assert_recall(
    rag: GraphRAG,
    questions: str | Path,
    *,
    at_2: float | None = None,
    at_5: float | None = None,
    at_10: float | None = None,
    method: str = "local",
) -> None:
    """Assert the mean recall of a method over the questions of a file (docs/evaluation.md has its format).

    A question whose gold passage is not in the publication counts as 0. A file with a line that cannot be used fails.

    Raises:
        AssertionError: a recall is lower; the message names the questions whose passages were not found.
        InputError: the file cannot be read.
        TypeError: neither `at_2` nor `at_5` nor `at_10` is given.
    """
    wanted = {f"recall@{k}": share for k, share in ((2, at_2), (5, at_5), (10, at_10)) if share is not None}
    if not wanted:
        raise TypeError("assert_recall needs at_2, at_5 or at_10: without, it would pass whatever is found.")
    loaded = load_questions(Path(questions))
    asked = [question for question in loaded.questions if question.gold]
    placed, unplaced = place(rag.index.reader(), asked)
    scores = measure(rag.index.reader(), placed, rag.tools.settings, [method], rag.context, (), rag.tools.embedder)
    problems = [str(problem) for problem in loaded.problems]
    for metric, share in wanted.items():
        values = {score.question: score.value for score in scores if score.metric == metric}
        reached = mean([values.get(question.id, 0.0) for question in asked])
        if reached < share:
            missed = [question.text for question in asked if values.get(question.id, 0.0) < 1]
            problems.append(
                f"{metric} by {method} is {reached:.3f}, less than {share:g}. Not found: {'; '.join(missed)}"
            )
    problems += [f"{question.text}: {reason}." for question, reason in unplaced]
    assert not problems, "\n".join(problems)
