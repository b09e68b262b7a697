"""In Dagster: the job evaluate, and the check retrieval_quality of the publication."""

import dagster as dg
import polars as pl
from pydantic import Field

from graphrag_assets.assets.automation import job_of
from graphrag_assets.assets.index_names import EVALUATE, PUBLICATION, IndexNames
from graphrag_assets.assets.stages import REMEDY_CHARACTERS, markdown_table, masked
from graphrag_assets.errors import GraphRAGError, OtherVersionError
from graphrag_assets.extras.evaluation.evaluate import MAX_LOSS, MAX_P, Evaluation, changes_between, evaluate
from graphrag_assets.extras.evaluation.questions import load_questions
from graphrag_assets.extras.evaluation.retrieval import BM25
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.index_files import current_number, kept_publications, publication_file

CHECK = "retrieval_quality"
_BACK = "`graphrag-assets publications rollback previous` gives readers the earlier publication."


class EvaluationConfig(dg.Config):
    """What is evaluated."""

    answers: bool = Field(False, description="Answer the questions, too; a chat model costs money.")


def evaluate_job(names: IndexNames) -> dg.JobDefinition:
    """Return the job evaluate."""

    @dg.op(
        name=names.name("measure"),
        required_resource_keys={names.resource},
        description="Measure what searches find of the passages that answer the questions of questions.jsonl.",
    )
    @masked()
    def measure(context: dg.OpExecutionContext, config: EvaluationConfig) -> None:
        settings = names.index(context.resources).settings
        questions = load_questions(settings.questions_file)
        with GraphRAG(settings.index_folder, settings=settings) as rag:
            measured = evaluate(rag, questions, with_answers=config.answers)
        context.log.info("%d questions measured; %d problems", len(questions.questions), len(measured.problems))
        for problem in measured.problems:
            context.log.warning("Not measured: %s", problem)
        context.log_event(dg.AssetObservation(names.key(PUBLICATION), metadata=_metadata(measured)))

    description = "Measure the publication: passages that searches find, beside BM25."
    return job_of(measure, names.name(EVALUATE), description)


def _metadata(measured: Evaluation) -> dict[str, float | dg.MetadataValue]:
    """Return the means as numbers, which the UI plots over time."""
    means = {
        f"{metric}/{method}": mean
        for metric in measured.metrics
        for method in measured.methods
        if (mean := measured.mean(method, metric)) is not None
    }
    return {
        "publication_evaluated": measured.publication,
        "questions": len(measured.values(BM25)),
        "not_measured": dg.MetadataValue.json(measured.problems),
        **{name: round(mean, 4) for name, mean in means.items()},
    }


def quality_check(names: IndexNames) -> dg.AssetChecksDefinition:
    """Return the check retrieval_quality: the current publication beside the one before it, on the user's questions."""

    @dg.asset_check(
        asset=names.key(PUBLICATION),
        name=CHECK,
        description="By no search method is recall@5 on the questions of questions.jsonl in the data folder worse than "
        f"in the publication before: by more than {100 * MAX_LOSS:g} points with p < {MAX_P:g}. Without the file "
        "nothing is measured. The job rollback gives readers the earlier publication.",
        required_resource_keys={names.resource},
    )
    @masked()
    def retrieval_quality(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        settings = names.index(context.resources).settings
        folder, number = settings.index_folder, current_number(settings.index_folder)
        earlier = [one for one in kept_publications(folder) if number and one < number]
        if not settings.questions_file.is_file():
            return dg.AssetCheckResult(passed=True, metadata={"compared_with": "nothing: there is no questions.jsonl"})
        try:
            if not number or not earlier:
                return dg.AssetCheckResult(passed=True, metadata={"compared_with": "nothing: no earlier publication"})
            questions, measured = load_questions(settings.questions_file), list[Evaluation]()
            for one in (earlier[-1], number):
                with GraphRAG(publication_file(folder, one), settings=settings) as rag:
                    measured.append(evaluate(rag, questions))
        except OtherVersionError:
            return dg.AssetCheckResult(passed=True, metadata={"compared_with": "nothing: another version made it"})
        except GraphRAGError as error:  # an unusable file of questions does not fail a run that has published
            context.log.warning("Not measured: %s", error)
            problem = {"not_measured": dg.MetadataValue.json([str(error)])}
            said = f"The publication was not compared with the one before: {error}"
            return dg.AssetCheckResult(
                passed=False, severity=dg.AssetCheckSeverity.WARN, description=said, metadata=problem
            )
        before, after = measured
        changes = changes_between(before, after)
        worse = [str(change) for change in changes if change.is_worse]
        lost = pl.DataFrame([(c.method, one) for c in changes for one in c.lost], ["method", "lost"], orient="row")
        return dg.AssetCheckResult(
            passed=not worse,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"Worse than publication {earlier[-1]}: {' '.join(worse)} {_BACK}" if worse else None,
            metadata={
                "compared_with": f"publication {earlier[-1]}",
                "questions": len(before.values(BM25).keys() & after.values(BM25).keys()),
                "not_measured": dg.MetadataValue.json(after.problems),
                **{f"recall@5/{change.method}": round(change.after, 4) for change in changes},
                **{f"recall@5_before/{change.method}": round(change.before, 4) for change in changes},
                "lost": dg.MetadataValue.md(markdown_table(lost, lost.height, REMEDY_CHARACTERS)),
            },
        )

    return retrieval_quality
