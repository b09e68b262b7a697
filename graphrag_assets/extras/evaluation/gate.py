"""The gate: a candidate publication is measured before readers see it, beside the last accepted one.

Both are measured on the same at most 50 questions: those of questions.jsonl, and generated ones of the accepted
publication. A metric is worse if its mean over the questions has fallen by more than two points and the paired
bootstrap gives p < 0.05. GRAPHRAG_GATE says what follows: warn logs it and publishes, block keeps the old publication.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from graphrag_assets import __version__
from graphrag_assets.errors import CheckError, GraphRAGError, InputError
from graphrag_assets.extras.evaluation.bootstrap import paired
from graphrag_assets.extras.evaluation.evaluators.index_rows import kept_share, row_counts
from graphrag_assets.extras.evaluation.evaluators.reports import report_support
from graphrag_assets.extras.evaluation.evaluators.stop_words import stop_word_shares
from graphrag_assets.extras.evaluation.generated import generated_questions
from graphrag_assets.extras.evaluation.questions import FILE, Placed, Question, load_questions, place
from graphrag_assets.extras.evaluation.results import (
    Verdict,
    record_scores,
    record_verdicts,
    recorded_scores,
    results,
)
from graphrag_assets.extras.evaluation.retrieval import Score, measure
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.outgoing import listed
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_files import current_number, publication_file
from graphrag_assets.store.publication_reader import CurrentPublication, Reader

log = logging.getLogger(__name__)

MAX_QUESTIONS = 50
MAX_LOSS = 0.02
MAX_P = 0.05
RANKINGS = ("BM25", "vectors", "graph")
_LOST_SHOWN = 10
_WHAT = {
    "BM25": "passages by words",
    "vectors": "passages by vectors",
    "graph": "passages through the graph, as local search ranks them",
    "links": "links from text units to entities",
    "relationships": "links from text units to relationships",
    "mentions": "mentions that became part of an entity",
    "terms": "terms of the inverted index",
    "stop words": "share of words that the index knows as stop words",
    "reports": "sentences of reports whose names stand in their community",
}
"""What a metric counts, in words."""


class Comparison(NamedTuple):
    """The verdicts on a candidate, and the questions that both publications have."""

    verdicts: list[Verdict]
    questions: dict[str, Question]


def check_candidate(settings: Settings, candidate: Path, number: int) -> None:
    """Judge the file of publication `number` before it is published; a hook of `indexing.publish`.

    Raises:
        CheckError: it is worse, or could not be measured, and GRAPHRAG_GATE is block.
    """
    accepted = current_number(settings.index_folder)
    if settings.gate == "off" or accepted is None or not publication_file(settings.index_folder, accepted).is_file():
        return
    try:
        verdicts, questions = _judge(settings, candidate, number, accepted)
        worse = [verdict for verdict in verdicts if verdict.is_worse]
        said = in_words(worse, questions, accepted)
    except GraphRAGError as error:
        worse, said = [], f"The candidate could not be measured. {error}"
    if not said:
        return
    if settings.gate == "block":
        raise CheckError(
            f"Not published: readers keep publication {accepted}. {said} If this is intended, publish with "
            "GRAPHRAG_GATE=warn."
        )
    log.warning("%s", said)


def in_words(worse: Sequence[Verdict], questions: Mapping[str, Question], accepted: int) -> str:
    """What has become worse, with the questions lost; empty if nothing has."""
    if not worse:
        return ""
    lines = [f"Worse than publication {accepted}:"]
    for verdict in worse:
        lost = [f"“{questions[one].text}”" for one in verdict.lost if one in questions]
        lines.append(
            f"{verdict.metric} by {verdict.method} {100 * verdict.before:.1f} → {100 * verdict.after:.1f} "
            f"({_WHAT.get(verdict.method, verdict.method)}; p {verdict.p:.4f}; {len(lost)} questions lost: "
            f"{listed(lost, _LOST_SHOWN, ' ')})."
        )
    return " ".join(lines)


def _judge(settings: Settings, candidate: Path, number: int, accepted: int) -> Comparison:
    """Compare the candidate with the accepted publication, and record what was measured."""
    folder = settings.index_folder
    old, new = (_reader(path) for path in (publication_file(folder, accepted), candidate))
    try:
        with results(folder) as connection:
            recorded = recorded_scores(connection, accepted, "gate", _made_with(old))
        comparison, scores = compare(old, new, gate_questions(settings, old), settings, recorded)
        with results(folder) as connection:
            record_scores(connection, accepted, "gate", _made_with(old), scores[0])
            record_scores(connection, number, "gate", _made_with(new), scores[1])
            record_verdicts(connection, number, accepted, comparison.verdicts)
    finally:
        old.close()
        new.close()
    return comparison


def _reader(path: Path) -> Reader:
    return CurrentPublication(path).reader()


def _made_with(reader: Reader) -> str:
    """What the numbers depend on besides publication and question."""
    return f"{__version__} {reader.embedding}"


def gate_questions(settings: Settings, accepted: Reader) -> list[Question]:
    """The questions of `<data>/questions.jsonl` that have gold passages, then generated ones; at most 50.

    Their ids are those of the file with text and passages, so that a corrected question is measured again.
    """
    own: list[Question] = []
    if (path := settings.data / FILE).is_file():
        try:
            loaded = [question for question in load_questions(path).questions if question.gold][:MAX_QUESTIONS]
            own = [replace(each, id=stable_id(each.id, each.text, each.gold)) for each in loaded]
        except InputError as error:
            log.warning("%s", error)
    return [*own, *generated_questions(accepted, MAX_QUESTIONS - len(own))]


def compare(
    old: Reader, new: Reader, questions: Iterable[Question], settings: Settings, recorded: Iterable[Score] = ()
) -> tuple[Comparison, tuple[list[Score], list[Score]]]:
    """Compare two publications on the questions whose gold passages are in both.

    Args:
        settings: the model that embeds questions.
        recorded: scores of the old one; only what is missing is measured.

    Returns:
        The comparison, and the scores of the old and of the new one.
    """
    asked = list(questions)
    before = {each.question.id: each for each in place(old, asked)[0]}
    after = {each.question.id: each for each in place(new, asked)[0] if each.question.id in before}
    before = {name: before[name] for name in after}
    known = [score for score in recorded if score.question in before]
    missing = [each for name, each in before.items() if name not in {score.question for score in known}]
    old_scores = [*known, *_recalls(old, missing, settings)]
    new_scores = _recalls(new, list(after.values()), settings)
    pairs = _paired(old_scores, new_scores) | _index_pairs(old, new, before, after)
    verdicts = [_verdict(*name, pair) for name, pair in pairs.items()]
    return Comparison(verdicts, {name: each.question for name, each in after.items()}), (old_scores, new_scores)


def _recalls(reader: Reader, placed: Sequence[Placed], settings: Settings) -> list[Score]:
    return [score for score in measure(reader, placed, settings, (), baselines=RANKINGS) if score.metric == "recall@5"]


Pairs = dict[str, tuple[float, float]]
"""Before and after, by id of the question."""


def _paired(before: Iterable[Score], after: Iterable[Score]) -> dict[tuple[str, str], Pairs]:
    old = {score[:3]: score.value for score in before}
    pairs: dict[tuple[str, str], Pairs] = {}
    for question, method, metric, value in after:
        if (question, method, metric) in old:
            pairs.setdefault((method, metric), {})[question] = (old[question, method, metric], value)
    return pairs


def _index_pairs(
    old: Reader, new: Reader, before: Mapping[str, Placed], after: Mapping[str, Placed]
) -> dict[tuple[str, str], Pairs]:
    """What the index keeps for the gold passages. Links and terms are shares of what the old publication has."""
    placed = list(before.values()), list(after.values())
    pairs: dict[tuple[str, str], Pairs] = {}
    old_rows, new_rows = row_counts(old, placed[0]), row_counts(new, placed[1])
    for metric, counts in new_rows.counts.items():
        for question, each in after.items():
            units = [new_rows.ids[unit] for unit in sorted(each.all_units) if unit in new_rows.ids]
            if (share := kept_share(old_rows.counts[metric], counts, units)) is not None:
                pairs.setdefault((metric, "kept"), {})[question] = (1.0, share)
    measures: dict[str, Callable[[Reader, Sequence[Placed]], dict[str, float]]] = {
        "stop words": stop_word_shares,
        "reports": report_support,
    }
    for name, share_of in measures.items():
        first, second = share_of(old, placed[0]), share_of(new, placed[1])
        pairs[name, "share"] = {
            question: (first[question], second[question]) for question in second if question in first
        }
    return pairs


def _verdict(method: str, metric: str, pairs: Pairs) -> Verdict:
    before, after = [pair[0] for pair in pairs.values()], [pair[1] for pair in pairs.values()]
    difference = paired(before, after)
    lost = sorted((new - old, question) for question, (old, new) in pairs.items() if new < old)
    is_worse = difference.mean < -MAX_LOSS and difference.p_worse < MAX_P
    total = max(len(pairs), 1)
    return Verdict(
        method, metric, sum(before) / total, sum(after) / total, difference.p_worse, is_worse, [one for _, one in lost]
    )
