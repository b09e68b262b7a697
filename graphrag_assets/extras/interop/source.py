"""Reads an index into frames of one shape: GraphRAG 1 to 3, and graphs of entities and relationships.

This module has the file names, column names and types of each generation.

The generations differ as follows (GraphRAG's docs call the steps "breaking changes"):

- 1: `create_final_*.parquet` with `title`, `text`; communities have members and parents, no children; no vectors.
- 2: `entities.parquet` and so on; text units have a list of `document_ids`.
- 3: the same with one `document_id`.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.graph_files import is_graph, read_graph
from graphrag_assets.extras.interop.left_out import Counts, fitting
from graphrag_assets.extras.interop.vectors import VECTORS, read_vectors
from graphrag_assets.pipeline.report_updates import REPORT_TYPES

Columns = dict[str, Any]
"""Names of columns and their polars types."""
LIST = pl.List(pl.String)
FINDINGS = REPORT_TYPES["findings"]


def _columns(texts: str, **others: Any) -> Columns:
    """Columns of texts, by their names, and others by name and type."""
    return {**dict.fromkeys(texts.split(), pl.String), **others}


DOCUMENTS = _columns("id title text creation_date document_date raw_data", number=pl.Int64)
TEXT_UNITS = _columns("id text", number=pl.Int64, document_ids=LIST, n_tokens=pl.Int64)
ENTITIES = _columns("id title type description", number=pl.Int64, text_unit_ids=LIST)
RELATIONSHIPS = _columns("id source target description", number=pl.Int64, weight=pl.Float64, text_unit_ids=LIST)
COVARIATES = _columns(
    "id type description subject_id object_id status start_date end_date source_text text_unit_id", number=pl.Int64
)
COMMUNITIES = _columns("id", community=pl.Int64, level=pl.Int64)
MEMBERS = _columns("entity", community=pl.Int64, level=pl.Int64)
REPORTS = _columns(
    "id title summary full_content rating_explanation full_content_json",
    community=pl.Int64,
    rank=pl.Float64,
    findings=FINDINGS,
)

MAX_NUMBER = 10_000_000
"""Maximum of whole numbers: a publication and its filters take time and memory in proportion to the largest one."""
MAX_LEVEL = 100
"""Maximum level of a community. A community is in all levels below its own, so rows grow with the number of levels."""


class Source(NamedTuple):
    """An index as read. The frames have the columns of the schemas above; `number` is the human_readable_id.

    `members`: community, level and entity, by id. `vectors`: kind (as in the table embeddings), id, vector.
    `generation`: such as "GraphRAG 3". `left_out`: the number of unreadable rows, by table and reason.
    """

    generation: str
    documents: pl.DataFrame
    text_units: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    covariates: pl.DataFrame
    communities: pl.DataFrame
    members: pl.DataFrame
    reports: pl.DataFrame
    vectors: pl.DataFrame
    left_out: Counter[tuple[str, str]]

    def rows(self) -> dict[str, int]:
        """Rows by table, under the names of GraphRAG's tables."""
        names = {"reports": "community_reports", "vectors": "embeddings"}
        return {
            names.get(name, name): frame.height
            for name, frame in self._asdict().items()
            if isinstance(frame, pl.DataFrame) and name != "members"
        }


# Former names of columns: the first that exists is used.
_OLDER: Mapping[str, Sequence[str]] = {
    "number": ("human_readable_id",),
    "title": ("title", "name"),
    "raw_data": ("raw_data", "metadata"),
    "document_ids": ("document_ids", "document_id"),
    "rating_explanation": ("rating_explanation", "rank_explanation"),
    "community": ("community", "human_readable_id", "id"),
}


def read_source(path: Path) -> Source:
    """The index or graph at `path`: a folder of parquet or csv files, or a GraphML file.

    Raises:
        InputError: it has no readable tables, a file is broken, or lacks the columns of names; it is of GraphRAG 0.
    """
    if is_graph(path):
        return source_of(f"a graph ({path.suffix.removeprefix('.')})", read_graph(path), pl.DataFrame(schema=VECTORS))
    if not path.is_dir():
        raise InputError(f"{path} is neither a folder with an index nor a .graphml file. Give the folder of the index.")
    folder = path / "output" if (path / "output").is_dir() else path
    tables = {name: table for name in TABLES if (table := _table(folder, name)) is not None}
    if "relationships" not in tables and "entities" not in tables:
        raise InputError(
            f"{folder} has neither entities nor relationships (entities.parquet, create_final_entities.parquet, "
            "entities.csv …). Give GraphRAG's output folder, or a folder with a graph."
        )
    for name, needed in _NEEDED.items():
        if name in tables:
            _check_columns(folder, name, tables[name], needed)
    generation, left_out = _generation(folder, tables), Counter[tuple[str, str]]()
    vectors = read_vectors(folder, left_out)
    source = source_of(generation, tables, vectors)
    source.left_out.update(left_out)
    return source


_NEEDED: Mapping[str, Sequence[Sequence[str]]] = {
    "entities": [("title", "name")],
    "relationships": [("source",), ("target",)],
}
"""By table, the required columns, each under one of these names."""


def _check_columns(folder: Path, name: str, table: pl.DataFrame, needed: Sequence[Sequence[str]]) -> None:
    missing = [" or ".join(names) for names in needed if not set(names) & set(table.columns)]
    if not missing:
        return
    (single, *others) = table.columns or [""]
    is_other = not others and (";" in single or "\t" in single)
    hint = "Columns have to be separated by commas." if is_other else "Rename the columns."
    raise InputError(
        f"The table {name} in {folder} has no column {' and no column '.join(missing)}. "
        f"It has: {', '.join(map(repr, table.columns)) or 'none'}. {hint}"
    )


TABLES = ("documents", "text_units", "entities", "relationships", "covariates", "communities", "community_reports")
"""The tables that every generation has."""


def _table(folder: Path, name: str) -> pl.DataFrame | None:
    """The table of that name, under any of its file names; None if there is none."""
    for file in (f"{name}.parquet", f"create_final_{name}.parquet", f"{name}.csv"):
        path = folder / file
        if path.is_file():
            try:
                if path.suffix == ".parquet":
                    return pl.read_parquet(path, glob=False)
                return pl.read_csv(path, infer_schema=False, glob=False)
            except (OSError, pl.exceptions.PolarsError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise InputError(f"{path} cannot be read: {reason}. Export or copy it again.") from error
    return None


def _generation(folder: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    if "text_units" not in tables and "communities" not in tables:
        return "a graph (tables)"
    if (folder / "create_final_entities.parquet").is_file():
        if "title" not in tables["entities"].columns:
            raise InputError(
                f"{folder} is an index of GraphRAG 0, which is not imported; versions 1 to 3 are. Index its documents "
                "again, here or with a newer GraphRAG."
            )
        return "GraphRAG 1"
    units = tables.get("text_units")
    return "GraphRAG 2" if units is not None and "document_ids" in units.columns else "GraphRAG 3"


def source_of(generation: str, tables: Mapping[str, pl.DataFrame], vectors: pl.DataFrame) -> Source:
    """The tables of any generation, by their names without prefix, in one shape.

    Numbers that are NaN or infinite are null.
    """
    left_out = Counts()
    tables = {name: _with_numbers_that_fit(name, table, left_out) for name, table in tables.items()}
    reports = _shaped(tables.get("community_reports"), REPORTS)
    given = tables.get("community_reports")
    n_given = 0 if given is None or "findings" not in given.columns else given["findings"].drop_nulls().len()
    unread = n_given - reports["findings"].drop_nulls().len()
    left_out["community_reports", "unreadable findings, left out"] += unread
    return Source(
        generation,
        _shaped(tables.get("documents"), DOCUMENTS),
        _shaped(tables.get("text_units"), TEXT_UNITS),
        _shaped(tables.get("entities"), ENTITIES),
        _shaped(tables.get("relationships"), RELATIONSHIPS),
        _shaped(tables.get("covariates"), COVARIATES),
        _shaped(tables.get("communities"), COMMUNITIES).with_columns(_LEVEL),
        _members(tables.get("communities")),
        reports,
        vectors,
        left_out,
    )


_LIMITS = {"number": MAX_NUMBER, "n_tokens": MAX_NUMBER, "level": MAX_LEVEL}
_OF_COMMUNITIES = {**_LIMITS, "community": MAX_NUMBER}


def _with_numbers_that_fit(name: str, table: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The rows of a table without a whole number that the index cannot hold."""
    limits = _OF_COMMUNITIES if name in ("communities", "community_reports") else _LIMITS
    for meaning, limit in limits.items():
        column = next((older for older in _OLDER.get(meaning, (meaning,)) if older in table.columns), None)
        if column is None or table.schema[column].is_nested():
            continue
        number = pl.col(column).cast(pl.Float64, strict=False).fill_nan(None)
        fits = number.is_null() | (number.abs() <= limit)
        table = fitting(table, fits, name, f"with a {column} above {limit:,}", counts)
    return table


def _members(communities: pl.DataFrame | None) -> pl.DataFrame:
    """Which entity is in which community."""
    if communities is None or "entity_ids" not in communities.columns:
        return pl.DataFrame(schema=MEMBERS)
    numbered = _renamed(communities, ("community",)).with_columns(entity=_ids(communities, "entity_ids"))
    found = _shaped(numbered.explode("entity", empty_as_null=False), MEMBERS)
    # -1 and null: in no community
    return found.with_columns(_LEVEL).filter(pl.col("community") >= 0)


_LEVEL = pl.col("level").fill_null(0).clip(0)


def _shaped(table: pl.DataFrame | None, schema: Columns) -> pl.DataFrame:
    """`table` with the columns of `schema`, found under any of their names; missing ones are null."""
    if table is None:
        return pl.DataFrame(schema=schema)
    renamed = _renamed(table, list(schema))
    columns = []
    for name, kind in schema.items():
        if name not in renamed.columns:
            columns.append(pl.lit([] if kind == LIST else None, kind).alias(name))
        elif kind == LIST:
            # Under the name of a single id, it is a single id.
            columns.append(_ids(renamed, name) if name in table.columns else _single_ids(name))
        elif kind == FINDINGS:
            columns.append(_findings(renamed, name))
        elif renamed.schema[name].is_nested():
            columns.append(_as_json(renamed[name]))
        else:
            given = pl.col(name).cast(kind, strict=False)
            columns.append(pl.when(given.is_finite()).then(given) if kind == pl.Float64 else given)
    return renamed.select(columns)


def _renamed(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    found = {
        name: next((older for older in _OLDER.get(name, (name,)) if older in table.columns), None) for name in names
    }
    return table.with_columns(
        pl.col(older).alias(name) for name, older in found.items() if older is not None and older != name
    )


def _ids(table: pl.DataFrame, name: str) -> pl.Expr:
    """A list of ids, from a list or from a text with a list in it; empty if there is none."""
    kind = table.schema[name]
    if kind == pl.String:
        return _read(table[name], _listed, LIST).fill_null([]).alias(name)
    if not isinstance(kind, pl.List):
        return _single_ids(name)
    texts = pl.col(name).cast(LIST).list.drop_nulls()
    return texts.list.eval(pl.element().filter(pl.element() != "")).fill_null([]).alias(name)


def _single_ids(name: str) -> pl.Expr:
    return pl.concat_list(pl.col(name).cast(pl.String)).list.drop_nulls().fill_null([]).alias(name)


def _listed(text: str) -> list[str]:
    """The ids in a text: JSON, or with commas, quotes and brackets in the way of Python and numpy."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list):
        return [str(one) for one in found if one not in (None, "")]
    return [one for one in re.split(r"[\[\]'\",\s]+", text) if one]


def _read(column: pl.Series, read: Callable[[str], Any], kind: Any) -> pl.Expr:
    """The parsed texts of a column; null where `read` returns None."""
    meanings = [None if text is None else read(text) for text in column]
    return pl.lit(pl.Series(column.name, meanings, dtype=kind))


def _findings(table: pl.DataFrame, name: str) -> pl.Expr:
    """Findings with both of their fields; those that are plain texts, as some models write them, get no summary.

    Null where they cannot be read.
    """
    kind = table.schema[name]
    if kind == pl.String:
        return _read(table[name], _findings_in, FINDINGS).alias(name)
    inner = kind.inner if isinstance(kind, pl.List) else None
    if inner == pl.String:
        plain = pl.struct(summary=pl.lit(""), explanation=pl.element().fill_null(""))
        return pl.col(name).list.eval(plain).alias(name)
    if isinstance(inner, pl.Struct):
        fields = {field.name for field in inner.fields}
        parts = [
            (pl.element().struct.field(field) if field in fields else pl.lit(None, pl.String))
            .cast(pl.String)
            .fill_null("")
            .alias(field)
            for field in ("summary", "explanation")
        ]
        return pl.col(name).list.eval(pl.struct(parts)).alias(name)
    return pl.lit(None, FINDINGS).alias(name)


def _findings_in(text: str) -> list[dict[str, str]] | None:
    """The findings in a text of JSON, or of Python as pandas writes it; None where it is neither."""
    for load in (json.loads, ast.literal_eval):
        try:
            found = load(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, list) and all(isinstance(one, dict | str) for one in found):
            rows = [one if isinstance(one, dict) else {"explanation": one} for one in found]
            return [{field: str(row.get(field) or "") for field in ("summary", "explanation")} for row in rows]
    return None


def _as_json(column: pl.Series) -> pl.Expr:
    texts = [None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in column]
    return pl.lit(pl.Series(column.name, texts, dtype=pl.String)).alias(column.name)
