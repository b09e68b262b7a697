"""`evaluate`: a table of what each search method finds, and of the answers that are right."""

import json
from pathlib import Path

import click

from graphrag_assets.cli.terminal import INDEX, Console, print_table, table_of, write
from graphrag_assets.extras.evaluation.evaluate import MAIN, Evaluation
from graphrag_assets.extras.evaluation.evaluate import evaluate as evaluate_publication
from graphrag_assets.extras.evaluation.questions import load_questions
from graphrag_assets.extras.evaluation.retrieval import BM25, METHODS
from graphrag_assets.query import METHODS as SEARCH_METHODS
from graphrag_assets.query import GraphRAG, MethodName
from graphrag_assets.settings import Settings


@click.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path))
@click.option("--method", "methods", multiple=True, type=click.Choice(SEARCH_METHODS), help="Default: local and basic.")
@click.option("--answers", is_flag=True, help="Answer the questions, too, and say how many answers are right.")
@click.option("--json", "as_json", is_flag=True, help="Print the score of each question as JSON.")
@INDEX
def evaluate(
    questions: Path | None, methods: tuple[MethodName, ...], answers: bool, as_json: bool, path: Path | None
) -> None:
    """Measure what searches find of the passages that answer QUESTIONS, a file with one JSON object a line.

    Default: questions.jsonl in the data folder.
    """
    console, settings = Console(), Settings.load()
    questions_read = load_questions(questions or settings.questions_file)
    with GraphRAG(path) as rag:
        measured = evaluate_publication(rag, questions_read, tuple(dict.fromkeys(methods)) or METHODS, answers)
    for problem in measured.problems:
        Console(stderr=True).say(f"Not measured: {problem}")
    if as_json:
        rows = [score._asdict() for score in measured.scores]
        write(json.dumps({"publication": measured.publication, "scores": rows}, ensure_ascii=False) + "\n")
    else:
        print_evaluation(console, measured)


def print_evaluation(console: Console, measured: Evaluation) -> None:
    """Print the means of an evaluation as a table."""
    title = f"Publication {measured.publication}: {len(measured.values(BM25))} questions"
    table = table_of("method", numbers=(*measured.metrics, f"{MAIN} − BM25"), title=title)
    for method in measured.methods:
        means = (percent(measured.mean(method, metric)) for metric in measured.metrics)
        table.add_row(method, *means, "" if method == BM25 else str(measured.beyond_bm25(method)))
    print_table(console, table)


def percent(share: float | None) -> str:
    """Return a share in percent; a dash for None."""
    return "–" if share is None else f"{100 * share:.1f}"
