"""Prompts tuned to the corpus: a profile made from a sample of text units, and tried on others before it is adopted."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.errors import InputError, SettingsError
from graphrag_assets.extras.tuning.embedded_tuner import EmbeddedTuner
from graphrag_assets.extras.tuning.entity_types import found_types, given_types, listed_type
from graphrag_assets.extras.tuning.examples import Measures, examples_from, passages
from graphrag_assets.extras.tuning.sample import Sample, varied_sample
from graphrag_assets.indexing.index import STAGED_PROFILE, Index, exclusive
from graphrag_assets.indexing.publish import publish_records
from graphrag_assets.indexing.staged_batches import staging_of
from graphrag_assets.pipeline.batch import units_to_extract
from graphrag_assets.store.prompt_profiles import adopt, profile_in_force, record_profile
from graphrag_assets.text.languages import NAMES

CODE_VERSION = "1"
"""Incremented when the same text units and answers give another profile."""
_SAME_LANGUAGE = 0.95
"""From so large a share of documents in one language, it is the one to write in."""
_SEED = 0xDEADBEEF  # any would do; a fixed one makes the same profile of the same index
_MAX_CANDIDATES = 20_000
_CANDIDATES = """
SELECT t.id, t.batch, e.vector FROM text_units t LEFT JOIN embeddings e ON e.kind = 'text_unit' AND e.id = t.id
QUALIFY row_number() OVER (PARTITION BY t.batch ORDER BY md5($seed || t.id))
        <= greatest($most // (SELECT count(DISTINCT batch) FROM text_units), 1)
"""
_UNITS = "SELECT t.* FROM text_units t WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
_DOCUMENTS = "FROM documents WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
_LANGUAGES = "SELECT language, count(*) / sum(count(*)) OVER () FROM documents GROUP BY ALL ORDER BY count(*) DESC, 1"


class TuningOptions(NamedTuple):
    """Options of the tuning.

    Attributes:
        sample: maximum text units to tune on.
        types: the entity types, or changes of those that are found; see `given_types`.
        examples: maximum worked examples.
        language: ISO 639-1 code of the language to write in; auto: that of nearly all documents;
            none: that of each document.
    """

    sample: int = 30
    types: str = ""
    examples: int = 4
    language: str = "auto"


class Tuned(NamedTuple):
    """A version of the profile: its number, whether it is new, and how the prompts compare on held-out text units.

    `proof`: measures of the prompts in force and of the tuned ones; empty without a chat model that extracts.
    """

    version: int
    is_new: bool
    profile: PromptProfile
    sample: Sample
    proof: dict[str, Measures]
    usage: "Mapping[str, Usage]"
    seconds: float


@exclusive("prompt_profile")
def tune_prompts(index: Index, options: TuningOptions, run_id: str) -> Tuned:
    """Make a profile of the corpus, try it, and record it as a version. Nothing is adopted.

    Raises:
        InputError: there are no text units.
        SettingsError: the options are not possible.
    """
    started, settings = time.monotonic(), index.settings
    tuner = EmbeddedTuner()
    if settings.asks_chat_model:
        from graphrag_assets.extras.tuning.model_tuner import ModelTuner  # imports litellm
        from graphrag_assets.indexing.provider_models import indexing_tasks

        tuner = ModelTuner(indexing_tasks(settings, index.profile, None, run_id, index.keys))
    try:
        profile, sample, proof = tune(index, options, tuner)
    finally:
        publish_records(index)
    usage = tuner.usage
    version, is_new = record_profile(
        index.working,
        profile,
        model=tuner.model,
        sample_ids=sample.ids,
        held_out_ids=sample.held_out,
        proof=[{"prompts": name, **measures._asdict()} for name, measures in proof.items()],
        calls=sum(used.calls for used in usage.values()),
        cost_usd=sum(used.cost_usd for used in usage.values()),
    )
    return Tuned(version, is_new, profile, sample, proof, usage, time.monotonic() - started)


@exclusive("prompt_profile")
def adopt_profile(index: Index, version: int) -> None:
    """Put a version in force, see `adopt`, also for other machines that extract.

    Raises:
        SettingsError: there is no such version.
        StagingError: the staging area cannot be used.
    """
    adopt(index.working, version)
    if staging := staging_of(index):
        profile = profile_in_force(index.working.read)
        staging.put(STAGED_PROFILE, json.dumps(asdict(profile) if profile else None).encode())


def plan_tuning(index: Index, options: TuningOptions) -> "tuple[pl.DataFrame, list[str]]":
    """The cost of `tune_prompts` as the columns of `dry_run.SCHEMA`, and notes on it. Nothing is sent or recorded."""
    from graphrag_assets.extras.cost_preview import dry_run  # imports litellm
    from graphrag_assets.extras.tuning.model_tuner import ModelTuner

    settings, tally = index.settings, dry_run.tally_of(index.settings)
    tally.without_claims = None  # only indexing extracts claims from all text units
    if settings.asks_chat_model:
        tune(index, options, ModelTuner(*dry_run.counting_tasks(settings, tally, index.profile)))
    costs = dry_run.cost_frame(settings, tally)
    return costs, dry_run.notes(settings, tally) if costs.height else ["No model is asked, so nothing is paid for."]


def tune(
    index: Index, options: TuningOptions, tuner: EmbeddedTuner
) -> tuple[PromptProfile, Sample, dict[str, Measures]]:
    """The profile of a sample, and the measures of the prompts with and without it."""
    sample, units = _sampled(index, options)
    untyped = tuner.untyped([units[unit] for unit in sample.ids])
    entities = [e for unit in sample.ids if unit in untyped for e in untyped[unit].entities]
    relationships = [r for unit in sample.ids if unit in untyped for r in untyped[unit].relationships]
    types = given_types(options.types, found_types((e.type, e.title) for e in entities))
    if not types:
        raise InputError("Nothing was found in the sample to take types from. Name them: `--types 'PERSON, SHIP'`.")
    pairs = [(r.type, f"{r.source} → {r.target}") for r in relationships if r.type]
    predicates = found_types(pairs, merge_heads=False, least=2)
    language = _language(index, options.language)
    draft = PromptProfile(language=language, entity_types=types, relationship_types=predicates)
    draft = tuner.described(draft, [units[unit].text for unit in sample.ids])
    if options.examples:
        listed, encoding = listed_type(draft.entity_types), index.settings.tokenizer
        candidates = passages((units[unit] for unit in sample.ids), untyped, listed, options.examples, encoding)
        first, second = tuner.readings(draft, candidates)
        draft = replace(draft, examples=examples_from(candidates, first, second, listed, options.examples))
    profile = draft.identified()
    return profile, sample, tuner.proof(profile, [units[unit] for unit in sample.held_out])


def _sampled(index: Index, options: TuningOptions) -> tuple[Sample, dict[str, TextUnit]]:
    if options.sample < 1 or options.examples < 0:
        raise SettingsError("--sample must be at least 1, and --examples at least 0.")
    candidates = index.working.read(_CANDIDATES, {"seed": str(_SEED), "most": _MAX_CANDIDATES})
    if candidates.is_empty():
        raise InputError("There are no text units to tune prompts on. Run `graphrag-assets index` first.")
    sample = varied_sample(candidates, options.sample, _SEED)
    ids = [*sample.ids, *sample.held_out]
    rows = index.working.read(_UNITS, {"ids": ids})
    documents = index.working.read(_DOCUMENTS, {"ids": rows["document_id"].to_list()})
    units = units_to_extract(rows, documents, index.settings.metadata_column_list)
    return sample, {unit.id: unit for unit in units}


def _language(index: Index, given: str) -> str:
    if given not in ("auto", "none", *NAMES):
        raise SettingsError(f"--language {given!r} is none of auto, none, {', '.join(NAMES)}.")
    if given != "auto":
        return "" if given == "none" else given
    language, share = index.working.read(_LANGUAGES).row(0)
    return language if language in NAMES and share >= _SAME_LANGUAGE else ""
