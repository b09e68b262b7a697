"""`evaluate`: a table of what each search method finds, of answers, and of the index."""

import json
from pathlib import Path

import click
from rich.text import Text

from graphrag_assets.cli.shared_options import INDEX
from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console, write
from graphrag_assets.extras.evaluation.evaluate import (
    ANSWERS,
    HEALTH,
    RETRIEVAL,
    Change,
    Evaluation,
    Options,
    compare_publications,
    questions_of,
    record,
)
from graphrag_assets.extras.evaluation.evaluate import (
    evaluate as evaluate_publication,
)
from graphrag_assets.extras.evaluation.export import export_answers
from graphrag_assets.extras.evaluation.judge import judge as judge_answers
from graphrag_assets.extras.evaluation.retrieval import METHODS
from graphrag_assets.query import GraphRAG, MethodName
from graphrag_assets.query.graphrag import METHODS as SEARCH_METHODS
from graphrag_assets.settings import Settings

_SHOWN = 5  # questions lost, for each metric
_COUNT = click.IntRange(min=0)


@click.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path))
@click.option("--compare", nargs=2, metavar="BEFORE AFTER", help="Compare two publications: numbers, previous, newest.")
@click.option("--method", "methods", multiple=True, type=click.Choice(SEARCH_METHODS), help="Default: local and basic.")
@click.option(
    "--generated", type=_COUNT, default=200, show_default=True, help="Generate questions until there are this many."
)
@click.option(
    "--answers", type=_COUNT, default=0, show_default=True, help="Answer this many questions, and score the answers."
)
@click.option("--export", "folder", type=click.Path(path_type=Path), help="Write BenchmarkQED's files to this folder.")
@click.option("--judge", is_flag=True, help="Have the chat model judge the answers of two methods, in both orders.")
@click.option("--json", "as_json", is_flag=True, help="Print all scores as JSON.")
@INDEX
def evaluate(
    questions: Path | None,
    compare: tuple[str, str] | None,
    methods: tuple[MethodName, ...],
    generated: int,
    answers: int,
    folder: Path | None,
    judge: bool,
    as_json: bool,
    path: Path | None,
) -> None:
    """Measure what searches find of the passages that answer QUESTIONS, a file with one JSON object a line.

    Default: questions.jsonl in the data folder where it is, filled up with questions made from the index.
    """
    console, settings = Console(), Settings.load()
    if (folder or judge) and not answers:
        raise click.UsageError("--export and --judge are about answers: say how many with --answers.")
    if compare and (answers or as_json):
        raise click.UsageError("--compare is about searches: leave out --answers, --export, --judge and --json.")
    if judge and as_json:
        raise click.UsageError("--json prints scores: leave out --judge.")
    chosen = tuple(dict.fromkeys(methods)) or METHODS
    if judge and len(chosen) != 2:
        raise click.UsageError("--judge compares two methods: give --method twice.")
    options = Options(chosen, generated, answers)
    with GraphRAG(path) as rag:
        asked = questions_of(settings, questions, rag, options)
        for problem in asked.problems:
            Console(stderr=True).say(f"Not used: {problem}")
        if compare:
            print_changes(console, compare, compare_publications(settings, compare, asked, options))
            return
        measured = evaluate_publication(rag, asked, options)
        if path is None:
            record(settings, measured)
        written = export_answers(folder, measured.answered, measured.answers) if folder else []
        if as_json:
            rows = [score._asdict() for score in measured.scores]
            write(json.dumps({"publication": measured.publication, "scores": rows}, ensure_ascii=False) + "\n")
            return
        print_evaluation(console, measured, asked.lines)
    if judge:
        _print_judged(console, settings, measured)
    if written:
        console.say(f"Written: {', '.join(map(str, written))}")


def print_evaluation(console: Console, measured: Evaluation, lines: dict[str, int]) -> None:
    """Print the tables of an evaluation, and the questions that could not be placed."""
    for question, reason in measured.unplaced:
        where = f"line {lines[question.id]}" if question.id in lines else question.kind
        Console(stderr=True).say(f"Not measured: {where}, “{question.text}”: {reason}.")
    kinds = [question.kind for question in measured.questions.values() if question.is_answerable]
    by_kind = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    headings = (*RETRIEVAL[:-1], "MRR", "tokens per passage", "recall@5 − BM25")
    title = f"Publication {measured.publication}: {len(kinds)} questions ({by_kind})"
    table = table_of("retrieval", numbers=headings, title=title)
    for method in measured.methods:
        shares = (_percent(measured.mean(method, metric)) for metric in RETRIEVAL)
        per_passage = measured.tokens_per_passage(method)
        against = "" if method == "BM25" else str(measured.against(method))
        table.add_row(method, *shares, "–" if per_passage is None else f"{per_passage:,.0f}", against)
    print_table(console, table)
    _print_answers(console, measured)
    health = table_of("index", numbers=("value",))
    for (method, metric), values in measured.by_metric.items():
        if method == HEALTH:
            health.add_row(metric, f"{values['']:.1f}" if metric == "entities per unit" else _percent(values[""]))
    print_table(console, health)


def _print_answers(console: Console, measured: Evaluation) -> None:
    answered = list(dict.fromkeys(m for m, metric in measured.by_metric if metric in ANSWERS))
    if answered:
        table = table_of("answers", numbers=[*answered, "questions"])
        for metric in ANSWERS:
            found = [measured.by_metric.get((method, metric), {}) for method in answered]
            if any(found):
                shares = (_percent(measured.mean(method, metric)) for method in answered)
                table.add_row(metric, *shares, str(max(map(len, found))))
        print_table(console, table)


def _print_judged(console: Console, settings: Settings, measured: Evaluation) -> None:
    (first, given), (second, others) = measured.answers.items()
    texts = [one.text for one in measured.answered]
    judged = judge_answers(settings, texts, [one.answer for one in given], [one.answer for one in others])
    console.say(
        f"Judged by {settings.model_of('query')}: {first} better {judged.first} times, {second} {judged.second} times, "
        f"{judged.ties} ties; difference in points {judged.difference}."
    )


def print_changes(console: Console, names: tuple[str, str], found: list[Change]) -> None:
    """Print what differs between two publications, with the questions that were lost."""
    table = table_of("method", "metric", numbers=(*names, "difference", "p worse", "lost", "won"))
    for change in found:
        p = f"{change.difference.p_worse:.3f}"
        counts = (str(len(change.lost)), str(len(change.won)))
        means = (_percent(change.before), _percent(change.after))
        table.add_row(change.method, change.metric, *means, str(change.difference), p, *counts)
    print_table(console, table)
    for change in found:
        if change.metric == "recall@5" and change.lost:
            console.print(Text(f"Lost by {change.method}:", "bold"))
            for question in change.lost[:_SHOWN]:
                console.say(f"  {question.text}")
            if len(change.lost) > _SHOWN:
                console.say(f"  … and {len(change.lost) - _SHOWN} more")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
