"""The content of the explorer's page, as tables of columns.

A large index does not fit on a page. The page has its best connected part, and `rows` counts the rows on the page and
in the index, so that the page can show what is left out.
"""

from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import polars as pl
import polars.selectors as cs

from graphrag_assets.contracts.records import LOSS_STAGES
from graphrag_assets.pipeline.layout import layout
from graphrag_assets.store.publication_reader import Reader

_COUNTED = ("entities", "relationships", "communities", "reports", "claims", "documents", "text_units", "candidates")
_PUBLISHED_AS = {"reports": "community_reports", "claims": "covariates", "candidates": "entity_candidates"}
_MADE_WITH = (
    "SELECT name, value FROM operations.index_settings WHERE name IN ('extractor', 'reporter', 'embedding_model')"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of an index a page has.

    The entities with most neighbors, the heaviest relationships among them, the largest communities, the claims
    about these entities, the candidates of the highest scores. Of the texts, first the best one of each entity, then
    the second best, up to `characters`. `nodes` is the maximum on the map; above it, communities stand for their
    entities.
    """

    nodes: int = 5_000
    entities: int = 50_000
    relationships: int = 100_000
    communities: int = 10_000
    claims: int = 30_000
    candidates: int = 1_000
    characters: int = 12_000_000


@dataclass(frozen=True, slots=True)
class Content:
    """The page's tables by name, the publication they are from, what wrote it, and what is left out.

    `rows` has, by table, the rows on the page and in the index. A text unit counts where its text is on the page.
    """

    publication: dict[str, Any]
    made_with: dict[str, str]
    errors: int
    nodes: int
    rows: dict[str, tuple[int, int]]
    tables: dict[str, pl.DataFrame]

    @property
    def left_out(self) -> dict[str, tuple[int, int]]:
        """`rows` of the tables that are not complete."""
        return {name: (here, total) for name, (here, total) in self.rows.items() if here < total}

    def as_json(self) -> dict[str, Any]:
        """Return the content as JSON-compatible objects; a table is an object of columns."""
        return {
            "publication": self.publication,
            "made_with": self.made_with,
            "errors": self.errors,
            "max_nodes": self.nodes,
            "rows": self.rows,
            **{name: frame.to_dict(as_series=False) for name, frame in self.tables.items()},
        }


def page_content(reader: Reader, limits: Limits | None = None) -> Content:
    """Return the page's content for the publication open in `reader`.

    Rows are known by their human_readable_id (communities by their number) throughout.

    Raises:
        StoreError: the file lacks a table or column: it was published by another version.
    """
    limits = limits or Limits()
    tables = {name: _table(reader, query, limits) for name, query in _queries().items()}
    tables["entities"] = _placed(tables)
    texts = tables["text_units"]["text"].count()
    here = {name: texts if name == "text_units" else tables[name].height for name in _COUNTED}
    counts = ", ".join(f"(SELECT count(*) FROM {_PUBLISHED_AS.get(name, name)}) AS {name}" for name in _COUNTED)
    totals = reader.query(f"SELECT {counts}").row(0, named=True)
    number, published_at = reader.query("SELECT number, strftime(published_at, '%Y-%m-%d %H:%M') FROM publication").row(
        0
    )
    return Content(
        publication={"number": number, "published_at": published_at},
        made_with=dict(reader.query(_MADE_WITH).iter_rows()),
        errors=reader.query(f"SELECT count(*) FROM index_errors WHERE stage NOT IN {LOSS_STAGES}").item(),
        nodes=limits.nodes,
        rows={name: (here[name], totals[name]) for name in _COUNTED},
        tables=tables,
    )


def _placed(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the entities of the page with their places on the map, `x` and `y` from -1 to 1."""
    entities = tables["entities"]
    places = layout(
        entities.select(id=pl.col("number").cast(pl.String)),
        tables["memberships"].select("level", "community", entity_id=pl.col("entity").cast(pl.String)),
        tables["relationships"]
        .filter(pl.col("weight") > 0)
        .select("weight", source_id=pl.col("source").cast(pl.String), target_id=pl.col("target").cast(pl.String)),
    )
    numbered = places.select(pl.col("id").cast(entities.schema["number"]).alias("number"), pl.col("x", "y").round(4))
    return entities.join(numbered, on="number", how="left", maintain_order="left")


def _queries() -> dict[str, str]:
    """Return the query of each table."""
    text = files("graphrag_assets.extras.explorer").joinpath("tables.sql").read_text(encoding="utf-8")
    common, *parts = text.split("-- table: ")
    return {part.partition("\n")[0]: common + part.partition("\n")[2] for part in parts}


def _table(reader: Reader, query: str, limits: Limits) -> pl.DataFrame:
    rows = reader.query(query, {key: value for key, value in asdict(limits).items() if f"${key}" in query})
    # JSON has no NaN and no infinity.
    return rows.with_columns(pl.when(cs.float().is_finite()).then(cs.float()))
