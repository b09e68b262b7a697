"""Descriptions of the assets, and the lineage of their columns.

Columns that do not depend on columns of other assets, such as the name of the model, are left out.
"""

import dagster as dg

from graphrag_assets.assets.index_names import IndexNames

DESCRIPTIONS = {
    "documents": "Read from the files of a batch. An unreadable file or row stops no other: the metadata "
    "list it as skipped, with its remedy.",
    "text_units": "Documents split into chunks, the unit of extraction and search. Every citation leads to one, "
    "and by its span to characters of the document.",
    "entity_mentions": "Entities extracted from each text unit. They change only when the text, the prompt or the "
    "model changes. With a language model, most of the cost is here.",
    "relationship_mentions": "Relationships extracted from each text unit, in the same step as entity_mentions.",
    "covariates": "Claims extracted from each text unit, with subject, object and dates, in the same step as the "
    "mentions.",
    "entity_candidates": "Pairs of entities that may be one thing, for a person or, on request, a model to decide on: "
    "`graphrag-assets resolve`. They change no entity.",
    "entities": "The nodes of the knowledge graph, merged from the mentions of all batches. Several descriptions are "
    "summarized. The table entity_aliases has the names that mean the same entity.",
    "relationships": "The edges of the knowledge graph, merged from the mentions of all batches. The weight grows with "
    "the number and the strength of the mentions.",
    "communities": "Hierarchical Leiden communities of the graph. They change only where the graph has "
    "changed. The table community_members has the community of each entity on every level, community_history what "
    "happened to communities.",
    "community_reports": "Global and DRIFT search read these. A report is rewritten only when its inputs have changed. "
    "With a language model, each costs a call. The table citations has their references, each resolved and checked.",
    "embeddings": "Vectors for similarity search. A text is embedded again when it, or the model, has changed.",
    "batch_state": "Its step in the job update_index first indexes the batches that are due; otherwise it computes "
    "nothing.",
    "publication": "graphrag.duckdb: a new compact file shaped for reading, numbered, linked, and switched in "
    "atomically. Open it with any DuckDB tool; it never blocks indexing and is never blocked by it.\n\n"
    "While a blocking check fails, nothing is published, and readers keep the previous publication. Its metadata "
    "show the graph's map and the cost of the models; the check publication_is_up_to_date compares it with the "
    "input folder.",
}
"""Descriptions of the assets, shown after the description of one row."""

_ENDS = "relationships.source_id relationships.target_id relationships.weight"
_TEXTS = "entities.title entities.description relationships.description covariates.description"
_OF_UNIT = {
    "id": "text_units.id text_units.text",
    "batch": "text_units.batch",
    "document_id": "text_units.document_id",
    "text_unit_id": "text_units.id",
}

# Columns, separated by blanks, and the columns of other assets that they are made from.
_SOURCES: dict[str, dict[str, str]] = {
    "text_units": {
        "id": "documents.id documents.text",
        "batch": "documents.batch",
        "document_id": "documents.id",
        "ordinal start_char end_char text n_tokens n_sentences": "documents.text",
        "headings context context_fingerprint": "documents.title documents.text",
    },
    "entity_mentions": {
        **_OF_UNIT,
        "title title_key type description n_sentences": "text_units.text documents.title documents.language",
    },
    "relationship_mentions": {
        **_OF_UNIT,
        "source target source_key target_key type description strength": (
            "text_units.text documents.title documents.language"
        ),
    },
    "covariates": {
        **_OF_UNIT,
        "type description subject_id object_id subject_key object_key status start_date end_date source_text": (
            "text_units.text"
        ),
    },
    "entities": {
        "id title_key": (
            "entity_mentions.title_key relationship_mentions.source_key relationship_mentions.target_key "
        ),
        "title": "entity_mentions.title relationship_mentions.source relationship_mentions.target",
        "type types": "entity_mentions.type",
        "description": "entity_mentions.description relationship_mentions.description",
        "text_unit_ids frequency": "entity_mentions.text_unit_id relationship_mentions.text_unit_id",
        "degree": "relationship_mentions.source_key relationship_mentions.target_key",
    },
    "relationships": {
        "id source_id target_id": "relationship_mentions.source_key relationship_mentions.target_key",
        "source target": "relationship_mentions.source relationship_mentions.target entity_mentions.title",
        "description": "relationship_mentions.description",
        "weight": "relationship_mentions.strength relationship_mentions.text_unit_id",
        "text_unit_ids": "relationship_mentions.text_unit_id",
        "type types": "relationship_mentions.type",
    },
    "entity_candidates": {
        "name_key other_key": "entities.title_key",
        "score evidence documents neighbors": (
            "entities.title_key entities.type entities.text_unit_ids relationships.source_id relationships.target_id "
            "embeddings.vector"
        ),
    },
    "communities": {
        "id community level parent children size title": f"entities.id {_ENDS}",
        "entity_ids": f"entities.id {_ENDS}",
        "relationship_ids": "relationships.id",
        "text_unit_ids": "entities.text_unit_ids",
        "period": "documents.creation_date",
    },
    "community_reports": {
        "id community": "communities.community",
        "level": "communities.level",
        "parent": "communities.parent",
        "children": "communities.children",
        "period": "communities.period",
        "size": "communities.size",
        "title summary full_content full_content_json findings rank rating_explanation": _TEXTS,
        "fingerprint context_tokens": _TEXTS,
    },
    "embeddings": {
        "id": "text_units.id entities.id community_reports.id",
        "fingerprint vector": "text_units.context text_units.text entities.title entities.description "
        "community_reports.full_content",
    },
}


def column_lineage(names: IndexNames, asset: str) -> dg.TableColumnLineage | None:
    """The columns of other assets that each column of `asset` comes from; None where none does."""
    if asset not in _SOURCES:
        return None
    return dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(names.key(table), of) for table, of in (s.split(".") for s in sources.split())]
            for columns, sources in _SOURCES[asset].items()
            for column in columns.split()
        }
    )
