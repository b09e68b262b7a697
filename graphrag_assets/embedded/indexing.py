"""The embedded default as `IndexingModels`: no key, no network."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from graphrag_assets.contracts.indexing_models import Extracted, IndexingModels
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.embedded import extractor, semantic
from graphrag_assets.embedded.centrality import summarize
from graphrag_assets.embedded.extractor import EXTRACTOR
from graphrag_assets.embedded.reporter import REPORTER, write_reports
from graphrag_assets.runtime.progress import Progress
from graphrag_assets.settings import Settings


def embedded_models(settings: Settings) -> IndexingModels:
    """Return the models of the embedded default, without vectors unless the settings name the packaged embedding model.

    Raises:
        SettingsError: a file of the embedding model is missing or damaged.
    """
    claims = settings.choices.claims != "off"
    fingerprint = EXTRACTOR if claims else f"{EXTRACTOR}+no-claims"
    models = IndexingModels(fingerprint, partial(_extract, claims), summarize, REPORTER, write_reports)
    if not settings.embeds_locally:
        return models

    def embed_locally(texts: Sequence[str]) -> np.ndarray:
        return semantic.encoder_of(settings.embedding_model).embed(texts)

    semantic.check_model(settings.embedding_model)
    return replace(models, embedding_model=semantic.INDEX_MODEL, embed=embed_locally)


def _extract(claims: bool, units: Iterable[TextUnit]) -> Iterator[Extracted]:
    all_units = list(units)
    progress = Progress("text units", len(all_units))
    for unit in all_units:
        try:
            names = unit.correspondents.splitlines()
            extraction = extractor.extract_unit(unit.text, unit.title, unit.language, names)
            yield unit.id, extraction if claims else replace(extraction, claims=[])
        except Exception as error:  # one unit must not stop its batch: it becomes a row of index_errors
            yield unit.id, error
        progress.advance()
