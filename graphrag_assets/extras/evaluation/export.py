"""Writes questions, answers and contexts in the formats of BenchmarkQED (https://github.com/microsoft/benchmark-qed)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_assets.errors import InputError
from graphrag_assets.extras.evaluation.questions import Question
from graphrag_assets.query.results import Answer


def export_answers(folder: Path, questions: Iterable[Question], answers: Mapping[str, Sequence[Answer]]) -> list[Path]:
    """Write `questions.json`, and for each method `<method>/answers.json` and `<method>/retrieval.json`.

    Args:
        answers: by method, in the order of the questions.

    Raises:
        InputError: the folder has files already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} has files already. Give a new folder.")
    asked = list(questions)
    contents: dict[str, list[dict[str, Any]]] = {"questions.json": [_question(one) for one in asked]}
    for method, given in answers.items():
        pairs = list(zip(asked, given, strict=True))
        contents[f"{method}/answers.json"] = [_named(one) | {"answer": answer.answer} for one, answer in pairs]
        contents[f"{method}/retrieval.json"] = [_named(one) | {"context": _context(answer)} for one, answer in pairs]
    written = []
    for name, rows in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written


def _question(question: Question) -> dict[str, Any]:
    attributes = {"kind": question.kind, "reference_answer": question.answer}
    return {"id": question.id, "text": question.text, "question_type": question.kind, "attributes": attributes}


def _named(question: Question) -> dict[str, str]:
    return {"question_id": question.id, "question_text": question.text}


def _context(answer: Answer) -> list[dict[str, str]]:
    """The text units that the answerer was given."""
    sources = answer.context.get("sources")
    if sources is None:
        return []
    rows = sources.filter("in_context").select("human_readable_id", "text").iter_rows()
    return [{"source_id": str(number), "source_text": text} for number, text in rows]
