"""Prompts tuned to the corpus: a chat model reads a sample of text units, and a profile is made of what it finds."""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.model_tasks import IndexingTasks, indexing_tasks
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.errors import InputError, SettingsError
from graphrag_assets.extras.tuning.entity_types import defined, found_types, given_types, listed_type
from graphrag_assets.extras.tuning.examples import Readings, examples_from, passages
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.prompts import fence, prompts_of
from graphrag_assets.llm.task import TaskModel, ask_model
from graphrag_assets.llm.tasks.extract_graph import ExtractionOptions
from graphrag_assets.llm.tasks.table import DESCRIBE_CORPUS
from graphrag_assets.pipeline.batch import units_to_extract
from graphrag_assets.store.prompt_profiles import adopt, record_profile
from graphrag_assets.text.languages import NAMES
from graphrag_assets.text.words import cut_text


def varied_sample(units: pl.DataFrame, n: int) -> list[str]:
    """At most `n` text units that differ as much as possible, as selected; without vectors the first.

    Farthest-point traversal (Gonzalez 1985, "Clustering to minimize the maximum intercluster distance"): each next one
    is as far as possible from those selected.

    Args:
        units: id, vector (unit vectors of equal length; null without an embedding model).
    """
    with_vectors = units.drop_nulls("vector")
    if with_vectors.is_empty():
        return units["id"].head(n).to_list()
    vectors = np.array(with_vectors["vector"].to_list())
    nearest, chosen = np.full(len(vectors), math.inf), list[int]()
    while len(chosen) < min(n, len(vectors)):
        chosen.append(int(np.argmax(nearest)))
        # Not BLAS, whose sums depend on the number of threads.
        nearest = np.minimum(nearest, np.maximum(1.0 - np.einsum("ij,j->i", vectors, vectors[chosen[-1]]), 0.0))
        nearest[chosen[-1]] = -1.0
    return with_vectors["id"].gather(chosen).to_list()


_SAMPLE_TOKENS = 6000
_MAX_LENGTH = 600  # characters of a field


async def with_description(
    draft: PromptProfile, model: TaskModel, texts: Sequence[str], language: str | None, encoding: str
) -> PromptProfile:
    """Return the draft with domain, persona, rating scale, and definitions of its types, from the beginnings of the
    texts.
    """
    room = _SAMPLE_TOKENS // max(len(texts), 1)
    answer, _ = await ask_model(
        model,
        DESCRIBE_CORPUS,
        sample="\n\n".join(fence(cut_text(text, room, encoding), "passage") for text in texts),
        types="\n".join(f"{kind.type}: {', '.join(kind.examples)}" for kind in draft.entity_types),
        language=language,
    )
    types = defined(draft.entity_types, {one.type: one.definition for one in answer.definitions})
    domain, persona, scale = map(_line, (answer.domain, answer.persona, answer.rating_scale))
    return replace(draft, entity_types=types, domain=domain, persona=persona, rating_scale=scale)


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_LENGTH]


log = logging.getLogger(__name__)
_ANY_TYPE = "the general noun that says best what kind of thing it is"
_SAME_LANGUAGE = 0.95
"""From so large a share of documents in one language, it is the one to write in."""
_SEED = 0xDEADBEEF  # any would do; a fixed one makes the same profile of the same index
_MAX_CANDIDATES = 20_000
_CANDIDATES = """
SELECT t.id, e.vector FROM text_units t LEFT JOIN embeddings e ON e.kind = 'text_unit' AND e.id = t.id
ORDER BY row_number() OVER (PARTITION BY t.batch ORDER BY md5($seed || t.id)), md5($seed || t.id) LIMIT $most
"""
"""In random order, of each batch one after the other."""
_UNITS = "SELECT t.* FROM text_units t WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
_DOCUMENTS = "FROM documents WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
_LANGUAGES = "SELECT language, count(*) / sum(count(*)) OVER () FROM documents GROUP BY ALL ORDER BY count(*) DESC, 1"


def tune_prompts(index: Index, sample: int = 30, types: str = "", examples: int = 4) -> tuple[int, PromptProfile]:
    """Make a profile of the corpus, and record it as a version, unless there is one of the same content.

    Args:
        index: of the corpus.
        sample: maximum text units to tune on.
        types: the entity types in place of those that are found; see `given_types`.
        examples: maximum worked examples.

    Returns:
        The number of the version, and the profile. It is not adopted.

    Raises:
        InputError: there are no text units.
        SettingsError: no chat model extracts, or the options are not possible.
    """
    settings = index.settings
    if settings.choices.extraction != "model":
        raise SettingsError("Prompts are tuned for a chat model that extracts. Set GRAPHRAG_CHAT_MODEL.")
    with index.exclusive("prompt_profile"):
        units = _sampled(index, sample)
        tasks = indexing_tasks(settings, run_id="tune", keys=index.keys)
        profile = _tuned(tasks, units, types, examples, _language(index)).identified()
        used = tasks.meter.by_task.values()
        version = record_profile(
            index.working,
            profile,
            model=settings.model_of("extraction"),
            sample_ids=[unit.id for unit in units],
            calls=sum(one.calls for one in used),
            cost_usd=sum(one.cost_usd for one in used),
        )
    return version, profile


def adopt_profile(index: Index, version: int) -> None:
    """Put a version in force, see `adopt`.

    Raises:
        SettingsError: there is no such version.
    """
    with index.exclusive("prompt_profile"):
        adopt(index.working, version)


def _tuned(
    tasks: IndexingTasks, units: list[TextUnit], type_option: str, n_examples: int, language: str
) -> PromptProfile:
    """Return the profile that a chat model makes of text units: types, description, examples."""
    settings = tasks.settings
    untyped = ExtractionOptions(entity_types=(_ANY_TYPE,), max_gleanings=0, language=settings.language or None)
    readings = _read(tasks, units, None, untyped)
    entities = [entity for reading in readings.values() for entity in reading.entities]
    types = given_types(type_option, found_types((e.type, e.title) for e in entities))
    if not types:
        raise InputError("Nothing was found in the sample to take types from. Name them: `--types 'PERSON, SHIP'`.")
    relationships = [relationship for reading in readings.values() for relationship in reading.relationships]
    pairs = [(r.type, f"{r.source} → {r.target}") for r in relationships if r.type]
    predicates = found_types(pairs, merge_heads=False, least=2)
    draft = PromptProfile(language=language, entity_types=types, relationship_types=predicates)
    written_in, texts = settings.language or draft.language_name, [unit.text for unit in units]
    draft = wait_for(with_description(draft, tasks.model, texts, written_in, settings.tokenizer))
    if not n_examples:
        return draft
    type_on_list = listed_type(draft.entity_types)
    typed = ExtractionOptions(
        entity_types=tuple(kind.type for kind in types),
        relationship_types=tuple(kind.type for kind in predicates),
        max_gleanings=0,
        language=written_in,
    )
    chosen = passages(units, readings, type_on_list, n_examples, settings.tokenizer)
    examples = examples_from(chosen, _read(tasks, chosen, draft, typed), type_on_list, n_examples)
    return replace(draft, examples=examples)


def _read(
    tasks: IndexingTasks, units: Iterable[TextUnit], profile: PromptProfile | None, options: ExtractionOptions
) -> Readings:
    """Return extractions by unit, in the order of the units; a failed one is left out."""
    readings: dict[str, UnitExtraction] = {}
    for unit, extraction in replace(tasks, prompts=prompts_of(tasks.settings, profile), options=options).extract(units):
        if isinstance(extraction, UnitExtraction):
            readings[unit] = extraction
        else:
            log.warning("the text unit %s is left out of the tuning: %s", unit, extraction)
    return {unit.id: readings[unit.id] for unit in units if unit.id in readings}


def _sampled(index: Index, n: int) -> list[TextUnit]:
    candidates = index.working.read(_CANDIDATES, {"seed": str(_SEED), "most": _MAX_CANDIDATES})
    if candidates.is_empty():
        raise InputError("There are no text units to tune prompts on. Run `graphrag-assets index` first.")
    ids = varied_sample(candidates, n)
    rows = index.working.read(_UNITS, {"ids": ids})
    documents = index.working.read(_DOCUMENTS, {"ids": rows["document_id"].to_list()})
    units = {unit.id: unit for unit in units_to_extract(rows, documents, index.settings.metadata_column_list)}
    return [units[unit] for unit in ids]


def _language(index: Index) -> str:
    """Return the language of nearly all documents; empty if there is none."""
    language, share = index.working.read(_LANGUAGES).row(0)
    return language if language in NAMES and share >= _SAME_LANGUAGE else ""
