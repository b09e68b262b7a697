"""Token counts of rows, made at publication, equal those of the lines in contexts."""

from dataclasses import replace

import polars as pl
import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.context import lines_of
from graphrag_assets.query.local import CLAIMS, ENTITIES, RELATIONSHIPS, REPORTS, SOURCES
from graphrag_assets.store.token_counts import without_citations
from graphrag_assets.text.words import count_tokens
from tests.conftest import Project

TABLES = {
    "Reports": (f"(SELECT * REPLACE ({without_citations('full_content')} AS full_content) FROM community_reports)", REPORTS),
    "Entities": ("entities", ENTITIES),
    "Relationships": ("(SELECT * REPLACE (round(weight, 2) AS weight), 1 + number % 999 AS links, "
                      "coalesce(nullif(relations, ''), type) AS predicates FROM "
                      "(SELECT *, human_readable_id AS number FROM relationships))", RELATIONSHIPS),
    "Claims": ("(SELECT c.*, status || coalesce(' until ' || if(superseded_by IS NULL, NULL, valid_until), '') AS state, "
               "document_date FROM covariates c JOIN documents d ON d.id = c.document_id)", CLAIMS),
    "Sources": ("(SELECT t.*, document_date FROM text_units t JOIN documents d ON d.id = t.document_id)", SOURCES),
}  # fmt: skip


@pytest.mark.extended
@pytest.mark.parametrize("section", TABLES)
def test_every_row_of_the_index_has_the_tokens_of_its_line(sample_index: Project, section: str):
    table, layout = TABLES[section]
    reader = GraphRAG(sample_index.root / "index").index.reader()
    rows = reader.query(f"SELECT * FROM {table}")
    layout = layout.with_dates(reader) if section in ("Claims", "Sources") else layout
    assert rows.height > 10
    assert rows["line_tokens"].to_list() == count_tokens(lines_of(layout, rows))
    if "short_line_tokens" in rows.columns:
        short = replace(layout, by_heading={**layout.by_heading, "content": "summary"})
        assert rows["short_line_tokens"].to_list() == count_tokens(lines_of(short, rows))


@pytest.mark.extended
@pytest.mark.parametrize("options", [{}, {"hops": 2}, {"entity_types": ["PERSON"]}])
def test_token_count_of_a_context_equals_its_text(sample_index: Project, options: dict):
    found = GraphRAG(sample_index.root / "index").context("local", "Who was Cyrus Field?", **options)
    for section in found.sections:
        assert section.passages
        assert sum(count_tokens([section.text])) <= section.tokens <= sum(count_tokens([section.text])) + 1
    assert isinstance(found.frames["entities"], pl.DataFrame)
