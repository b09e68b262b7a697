"""In Dagster: the job evaluate, and the check retrieval_quality of the publication."""

from typing import Any

import dagster as dg
import polars as pl
from pydantic import Field

from graphrag_assets.defs.index_names import EVALUATE, PUBLICATION, IndexNames
from graphrag_assets.defs.jobs import job_of
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.reporting import REMEDY_CHARACTERS, markdown_table, picture
from graphrag_assets.defs.resources import begin_step, needs
from graphrag_assets.extras.evaluation.evaluate import (
    HEALTH,
    RETRIEVAL,
    Evaluation,
    Options,
    evaluate,
    questions_of,
    record,
)
from graphrag_assets.extras.evaluation.gate import MAX_LOSS, MAX_P, gate_questions
from graphrag_assets.extras.evaluation.results import trend, verdicts_on
from graphrag_assets.pictures.recall_chart import recall_chart
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.publication_files import current_number, publication_file
from graphrag_assets.store.publication_reader import CurrentPublication

CHECK = "retrieval_quality"
_STATEMENT = (
    "No measure of the publication is worse than that of the one before: by more than "
    f"{100 * MAX_LOSS:g} points with p < {MAX_P:g}, on at most 50 questions. GRAPHRAG_GATE=block keeps worse ones from "
    "readers."
)


class EvaluationConfig(dg.Config):
    """What is evaluated."""

    generated: int = Field(200, ge=0, description="Questions are generated until there are this many.")
    answers: int = Field(0, ge=0, description="Number of questions that are answered, too; a chat model costs money.")


def evaluate_job(names: IndexNames) -> dg.JobDefinition:
    """The job evaluate."""

    @dg.op(
        name=names.name("measure"),
        required_resource_keys=needs(names),
        description="Measure what searches find of the passages that answer questions, and the health of the index.",
    )
    @masked
    def measure(context: dg.OpExecutionContext, config: EvaluationConfig) -> None:
        settings = begin_step(names, context).settings
        options = Options(generated=config.generated, answers=config.answers)
        with GraphRAG(settings.index_folder) as rag:
            measured = evaluate(rag, questions_of(settings, None, rag, options), options)
        record(settings, measured)
        chart = recall_chart(trend(settings.index_folder), "recall@5 by publication")
        metadata = {**_metadata(measured), "recall": picture("recall@5 by publication", chart)}
        context.log_event(dg.AssetObservation(names.key(PUBLICATION), metadata=metadata))

    description = (
        "Measure the publication: passages that searches find, beside BM25 and vectors; see docs/evaluation.md."
    )
    return job_of(measure, names.name(EVALUATE), description)


def _metadata(measured: Evaluation) -> dict[str, Any]:
    """The means as numbers, which the UI plots over time, and as a table."""
    rows = [
        {"method": method, **{metric: _percent(measured.mean(method, metric)) for metric in RETRIEVAL}}
        for method in measured.methods
    ]
    numbers = {f"recall@5/{method}": measured.mean(method, "recall@5") for method in measured.methods}
    state = {metric: values[""] for (method, metric), values in measured.by_metric.items() if method == HEALTH}
    return {
        "publication_evaluated": measured.publication,
        "questions": len(measured.questions),
        "retrieval": dg.MetadataValue.md(markdown_table(pl.DataFrame(rows), len(rows))),
        **{name: round(value, 4) for name, value in {**numbers, **state}.items() if value is not None},
    }


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def quality_check_key(names: IndexNames) -> dg.AssetCheckKey:
    """The key of the check retrieval_quality."""
    return dg.AssetCheckKey(names.key(PUBLICATION), CHECK)


def quality_check(names: IndexNames) -> dg.AssetChecksDefinition:
    """The check retrieval_quality: what the gate found of the current publication, with the questions lost."""

    @dg.asset_check(
        asset=names.key(PUBLICATION), name=CHECK, description=_STATEMENT, required_resource_keys=needs(names)
    )
    @masked
    def retrieval_quality(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        settings = begin_step(names, context).settings
        number = current_number(settings.index_folder)
        against, verdicts = verdicts_on(settings.index_folder, number) if number else (None, [])
        if not verdicts:
            return dg.AssetCheckResult(passed=True, metadata={"compared_with": "no earlier publication"})
        worse = [verdict for verdict in verdicts if verdict.is_worse]
        rows = pl.DataFrame(
            {
                "measure": f"{verdict.metric} by {verdict.method}",
                "before": _percent(verdict.before),
                "after": _percent(verdict.after),
                "p": f"{verdict.p:.4f}",
                "questions lost": len(verdict.lost),
            }
            for verdict in verdicts
        )
        metadata: dict[str, Any] = {
            "compared_with": against,
            "measures": dg.MetadataValue.md(markdown_table(rows, rows.height)),
        }
        if worse and against and (old := publication_file(settings.index_folder, against)).is_file():
            reader = CurrentPublication(old).reader()
            texts = {question.id: question.text for question in gate_questions(settings, reader)}
            reader.close()
            lost = [(verdict.method, texts[one]) for verdict in worse for one in verdict.lost[:10] if one in texts]
            table = pl.DataFrame(lost, ["measure", "question"], orient="row")
            metadata["lost"] = dg.MetadataValue.md(markdown_table(table, table.height, REMEDY_CHARACTERS))
        return dg.AssetCheckResult(passed=not worse, severity=dg.AssetCheckSeverity.WARN, metadata=metadata)

    return retrieval_quality
