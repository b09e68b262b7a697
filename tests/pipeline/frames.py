"""Small frames for pipeline tests: mentions written as tuples."""

import polars as pl

from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.ids import stable_id
from graphrag_assets.text.words import title_key

NO_ALIASES = pl.DataFrame(
    schema={
        "document_id": pl.String,
        "alias_key": pl.String,
        "title_key": pl.String,
        "rule": pl.String,
        "accepted": pl.Boolean,
    }
)


def entity_mentions(*rows: tuple[str, str, str, str], extractor: str = EXTRACTOR) -> pl.DataFrame:
    """Mentions from (text unit, title, type, description); the unit's document is the part before '#'."""
    return pl.DataFrame(
        [
            {
                "id": stable_id(unit, title, kind),
                "batch": "b",
                "document_id": unit.split("#")[0],
                "text_unit_id": unit,
                "title": title,
                "title_key": title_key(title),
                "type": kind,
                "description": description,
                "n_sentences": 1,
                "extractor": extractor,
            }
            for unit, title, kind, description in rows
        ],
        schema={
            **dict.fromkeys(
                ("id", "batch", "document_id", "text_unit_id", "title", "title_key", "type", "description"),
                pl.String,
            ),
            "n_sentences": pl.Int64,
            "extractor": pl.String,
        },
    )


def relationship_mentions(*rows: tuple[str, str, str, float], extractor: str = EXTRACTOR) -> pl.DataFrame:
    """Relationship mentions from (text unit, source, target, strength)."""
    return pl.DataFrame(
        [
            {
                "id": stable_id(unit, source, target),
                "batch": "b",
                "document_id": unit.split("#")[0],
                "text_unit_id": unit,
                "source": source,
                "target": target,
                "source_key": title_key(source),
                "target_key": title_key(target),
                "type": "",
                "description": f"{source} and {target} in {unit}.",
                "strength": strength,
                "extractor": extractor,
            }
            for unit, source, target, strength in rows
        ],
        schema={
            **dict.fromkeys(
                (
                    "id",
                    "batch",
                    "document_id",
                    "text_unit_id",
                    "source",
                    "target",
                    "source_key",
                    "target_key",
                    "type",
                    "description",
                ),
                pl.String,
            ),
            "strength": pl.Float64,
            "extractor": pl.String,
        },
    )
