"""The schema, declared once: every table and column with its type and its meaning.

`WORKING` is what assets write; `PUBLISHED` is what people and the query module read: most tables of the index, with
columns that only a publication has, such as numbers that link rows, and tables for searching. A publication has three
schemas: `main` has what a person queries; `search` what queries of this package read; `operations` records of runs
and settings. Integer keys beside the string ids and sorted bridge tables make a search a few milliseconds of SQL.

Column names follow GraphRAG 3's output tables, as a superset. There are no primary or foreign keys: batch
replacement is 24 times slower with them, so asset checks guard keys instead (see docs/architecture.md).
"""

from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from graphrag_assets.ids import stable_id

_INCOMPRESSIBLE = ("id", "fingerprint", "source", "target", "form", "term", "vector")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its DuckDB type, what it means, and which of the two databases has it."""

    name: str
    type: str
    comment: str
    place: Literal["both", "index", "publication"] = "both"

    def ddl(self) -> str:
        """The column in `CREATE TABLE`.

        Ids, keys, names and vectors hardly compress. As they are, they are searched three times as fast, and one vector
        is read ten times as fast.
        """
        hardly = self.name in _INCOMPRESSIBLE or self.name.endswith(("_id", "_ids", "_key"))
        can_be = "VARCHAR" in self.type or self.type == "FLOAT[]"  # not FLOAT[n]
        compression = " USING COMPRESSION uncompressed" if hardly and can_be else ""
        return f"{identifier(self.name)} {self.type}{compression}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, what one row is, its key columns, its columns in order, and its schema in the file.

    `published`: the table as it is in a publication, with its reading order; None if it is not there.
    """

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    schema: str = "main"
    order: str = ""
    published: "Table | None" = None

    @property
    def sql_name(self) -> str:
        """The table's name in SQL, with its schema where that is not `main`."""
        return identifier(self.name) if self.schema == "main" else f"{self.schema}.{identifier(self.name)}"

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def ddl(self) -> str:
        """`CREATE TABLE IF NOT EXISTS`, and its schema, with comments on the table and each column."""
        name, columns = self.sql_name, ", ".join(c.ddl() for c in self.columns)
        comments = "".join(f'COMMENT ON COLUMN {name}."{c.name}" IS {literal(c.comment)};' for c in self.columns)
        create_schema = "" if self.schema == "main" else f"CREATE SCHEMA IF NOT EXISTS {self.schema};"
        return (
            f"{create_schema}CREATE TABLE IF NOT EXISTS {name} ({columns});"
            f"COMMENT ON TABLE {name} IS {literal(self.comment)};{comments}"
        )


def literal(value: object) -> str:
    """`value` as an SQL text, for statements that take no parameters.

    A path is made absolute: DuckDB takes `ab:` at the start of a relative one for a protocol, and `~` for a home.
    """
    text = str(value.absolute() if isinstance(value, Path) else value)
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def table(name: str, comment: str, key: str, *columns: tuple[str, str, str] | Column, order: str = "") -> Table:
    """A table of the index, of a publication, or of both.

    Args:
        name: with a schema, which it has in a publication, or without.
        comment: what one row is.
        key: the key columns, separated by blanks.
        columns: those of both databases as (name, type, comment).
        order: the reading order in a publication, in SQL; none: it is not published.
    """
    schema, _, name = name.rpartition(".")
    all_columns = [column if isinstance(column, Column) else Column(*column) for column in columns]
    stored, shown = (tuple(c for c in all_columns if c.place in ("both", place)) for place in ("index", "publication"))
    of_index = Table(name, comment, tuple(key.split()), stored)
    published = replace(of_index, columns=shown, schema=schema or "main", order=order)
    return replace(of_index, published=published if order else None)


def published_table(name: str, comment: str, key: str, *columns: tuple[str, str, str], order: str) -> Table:
    """A table that only a publication has."""
    return table(name, comment, key, *in_publication(*columns), order=order)


def in_publication(*columns: tuple[str, str, str]) -> list[Column]:
    """Columns that only a publication has: it computes them."""
    return [Column(*column, place="publication") for column in columns]


def in_index(*columns: tuple[str, str, str]) -> list[Column]:
    """Columns that are not published."""
    return [Column(*column, place="index") for column in columns]


ID = ("id", "VARCHAR", "Deterministic hash of what makes the row itself; the same in every run.")
NUMBER = ("human_readable_id", "BIGINT", "Small number for prompts and citations; never reused.")
BATCH = ("batch", "VARCHAR", "The batch (partition) the row stems from.")
DOCUMENT_ID = ("document_id", "VARCHAR", "The document the row stems from.")
TEXT_UNIT_ID = ("text_unit_id", "VARCHAR", "The text unit the row was extracted from.")
TEXT_UNIT_IDS = ("text_unit_ids", "VARCHAR[]", "The text units it is mentioned in, sorted.")
TYPES = ("types", 'STRUCT("type" VARCHAR, n BIGINT)[]', "All types given to it, with their mentions.")
FINGERPRINT = ("fingerprint", "VARCHAR", "Hash of everything the row was computed from.")
EXTRACTOR = (
    "extractor",
    "VARCHAR",
    "What extracted it: method or model, prompt and options. Null: not done yet.",
)

_TEXT_UNIT_NUMBER = ("text_unit_number", "BIGINT", "human_readable_id of the text unit.")
_LINE_TOKENS = ("line_tokens", "BIGINT", "Tokens (o200k_base) of the row as a context shows it, counted for searches.")
_TIMES = (
    ("stated_on", "DATE", "The date of the newest document that states it, else the date in the text."),
    ("valid_from", "DATE", "Since when it holds: the date in the text, else of the first document that states it."),
    ("valid_until", "DATE", "The first day on which it no longer holds, by the text or a later statement."),
    ("superseded_by", "VARCHAR", "Id of the row that holds from then on; see search.facts."),
)
_PERIOD_DATE = ("period_date", "DATE", "period as a date; null when it is none.")

STATED, DENIED = "facts", "facts:not"
"""What extracted a mention that a person states in a file of facts, or takes back there."""
SAME_AS = "SAME_AS"
"""The type of the relationship mention by which a person states that a name stands for another."""
IMPORTED = "imported"
"""What extracted a mention or wrote a report that came with an imported index: whatever made that index."""

DOCUMENTS = table(
    "documents",
    "One row per input document: a text file, or one row of a structured file.",
    "id",
    ID,
    *in_publication(NUMBER),
    BATCH,
    ("source", "VARCHAR", "Path of the file, relative to the input folder."),
    ("row_number", "BIGINT", "1-based row in a structured file; null for a text file."),
    ("title", "VARCHAR", "Title column, first heading, or file name."),
    ("text", "VARCHAR", "The full text; character spans of text units refer to it."),
    *in_publication(
        ("text_unit_ids", "VARCHAR[]", "Its text units, in order."),
        ("created_at", "TIMESTAMP", "creation_date as a time, UTC; null when it is none."),
    ),
    ("creation_date", "VARCHAR", "Time of the file's last change, ISO 8601, UTC; null for a row of a table."),
    ("document_date", "DATE", "What the document says its date is, or else its file's name; null if neither does."),
    ("raw_data", "JSON", "The other columns of a structured file's row."),
    ("content_hash", "VARCHAR", "Hash of title, text and raw_data; differs after an edit."),
    ("format", "VARCHAR", "File format it was read from."),
    ("encoding", "VARCHAR", "Encoding of the text file it was read from, such as utf-8 or cp1252."),
    (
        "text_column",
        "VARCHAR",
        "Column of a table that its text is from; * for all columns of the row; null for other files.",
    ),
    ("title_column", "VARCHAR", "Column of a table that its title is from; null if the table has none."),
    ("language", "VARCHAR", "Language of the text, ISO 639-1; und if unidentified."),
    ("n_tokens", "BIGINT", "Tokens of the text."),
    (
        "places",
        "STRUCT(start_char BIGINT, kind VARCHAR, value VARCHAR)[]",
        "From which character on which page, slide, sheet or time holds; empty for a file without places.",
    ),
    order="human_readable_id",
)

TEXT_UNITS = table(
    "text_units",
    "One row per chunk of a document: the unit of extraction and of citation.",
    "id",
    ID,
    *in_publication(NUMBER),
    BATCH,
    DOCUMENT_ID,
    ("ordinal", "BIGINT", "Position in the document, from 0."),
    ("start_char", "BIGINT", "Characters of documents.text before its first one."),
    (
        "end_char",
        "BIGINT",
        "Characters of documents.text up to its last one: documents.text[start_char + 1:end_char] in SQL, which counts "
        "from 1; documents.text[start_char:end_char] in Python.",
    ),
    ("text", "VARCHAR", "The text of the unit."),
    ("headings", "VARCHAR[]", "Document title and headings that the unit stands under or begins: what it is about."),
    (
        "context",
        "VARCHAR",
        "What is searched and embedded with the text, not part of it: document title › headings, none, or what a chat "
        "model wrote of the unit's place in its document.",
    ),
    (
        "context_fingerprint",
        "VARCHAR",
        "Hash of what the chat model wrote the context from; null: it is title and headings alone.",
    ),
    ("n_tokens", "BIGINT", "Tokens of the text."),
    *in_publication(
        ("entity_ids", "VARCHAR[]", "Entities named in it, sorted."),
        ("relationship_ids", "VARCHAR[]", "Relationships stated in it, sorted."),
        ("covariate_ids", "VARCHAR[]", "Claims made in it, sorted."),
        _LINE_TOKENS,
    ),
    ("n_sentences", "BIGINT", "Sentences with at least one letter or digit."),
    ("page", "BIGINT", "Page or slide on which the text begins; null for a file without pages."),
    ("sheet", "VARCHAR", "Sheet of a workbook that the row stands in."),
    ("time", "VARCHAR", "Time at which the text begins, of subtitles and chats, as the file has it."),
    EXTRACTOR,
    order="human_readable_id",
)

ENTITY_MENTIONS = table(
    "entity_mentions",
    "One row per entity and text unit that names it, as extracted. Facts: entities are derived from these.",
    "id",
    ID,
    BATCH,
    DOCUMENT_ID,
    TEXT_UNIT_ID,
    *in_publication(
        ("entity_number", "BIGINT", "human_readable_id of the entity it became part of; null when it was left out."),
        _TEXT_UNIT_NUMBER,
    ),
    ("title", "VARCHAR", "The name as the text has it."),
    ("title_key", "VARCHAR", "The normalized name under which mentions are grouped."),
    ("type", "VARCHAR", "Entity type given by this extraction."),
    ("description", "VARCHAR", "What this text unit says of the entity."),
    ("n_sentences", "BIGINT", "In how many sentences of the unit it is named."),
    EXTRACTOR,
    order="entity_number, text_unit_number, id",
)

RELATIONSHIP_MENTIONS = table(
    "relationship_mentions",
    "One row per relation of two entities and text unit that states it, as extracted.",
    "id",
    ID,
    BATCH,
    DOCUMENT_ID,
    TEXT_UNIT_ID,
    *in_publication(
        ("relationship_number", "BIGINT", "human_readable_id of the relationship; null when it was left out."),
        ("source_number", "BIGINT", "human_readable_id of the source entity; null when it was left out."),
        ("target_number", "BIGINT", "human_readable_id of the target entity; null when it was left out."),
        _TEXT_UNIT_NUMBER,
    ),
    ("source", "VARCHAR", "Name of the entity the relation starts from."),
    ("target", "VARCHAR", "Name of the other entity."),
    ("source_key", "VARCHAR", "Normalized source name."),
    ("target_key", "VARCHAR", "Normalized target name."),
    ("type", "VARCHAR", "Short upper-case predicate, such as COMMANDED; empty when none is known."),
    ("description", "VARCHAR", "What the text unit says of the relation."),
    ("strength", "DOUBLE", "1 to 10 from a language model; number of sentences from the embedded default."),
    EXTRACTOR,
    order="relationship_number, text_unit_number, id",
)

COVARIATES = table(
    "covariates",
    "One row per claim: a dated or quantified statement about an entity, with its source text.",
    "id",
    ID,
    *in_publication(NUMBER),
    BATCH,
    DOCUMENT_ID,
    TEXT_UNIT_ID,
    ("covariate_type", "VARCHAR", "Always 'claim'."),
    ("type", "VARCHAR", "Kind of claim."),
    ("description", "VARCHAR", "The claim in words."),
    ("subject_id", "VARCHAR", "Name of the subject, as in GraphRAG."),
    ("object_id", "VARCHAR", "Name of the object; null if it has none (NONE in the working tables)."),
    ("subject_key", "VARCHAR", "Normalized subject name; joins entities.title_key after aliases."),
    ("object_key", "VARCHAR", "Normalized object name."),
    *in_publication(
        ("subject_number", "BIGINT", "human_readable_id of the subject entity; null when it is no entity."),
        ("object_number", "BIGINT", "human_readable_id of the object entity; null when it is no entity."),
        _TEXT_UNIT_NUMBER,
        _LINE_TOKENS,
        ("starts_on", "DATE", "The first day of start_date; null when it is no date."),
        ("ends_on", "DATE", "The last day of end_date; null when it is no date."),
        *_TIMES,
    ),
    ("status", "VARCHAR", "TRUE, FALSE or SUSPECTED."),
    ("start_date", "VARCHAR", "ISO 8601, as precise as known: 1866, 1866-07 or 1866-07-27."),
    ("end_date", "VARCHAR", "ISO 8601, as precise as known."),
    ("source_text", "VARCHAR", "The quoted passage, literally in the text unit."),
    EXTRACTOR,
    order="subject_number, human_readable_id",
)

ENTITY_ALIASES = table(
    "entity_aliases",
    "Decisions of entity resolution: one name stands for another, everywhere or in one document.",
    "document_id alias_key",
    ("document_id", "VARCHAR", "The document the alias holds in; null: everywhere."),
    ("alias_key", "VARCHAR", "The normalized name that is replaced."),
    ("title_key", "VARCHAR", "The normalized name it stands for."),
    ("rule", "VARCHAR", "The rule that decided."),
    ("accepted", "BOOLEAN", "Only accepted aliases are applied."),
    order="ALL",
)

SUMMARIZED = table(
    "summarized",
    "One row per entity or relationship whose description is a summary of several.",
    "id",
    ID,
    FINGERPRINT,
)

ENTITY_CANDIDATES = table(
    "entity_candidates",
    "One row per pair of names that may be one thing, or on which somebody has decided.",
    "name_key other_key",
    ("name_key", "VARCHAR", "The normalized name that would stand for the other: the less frequent one."),
    ("other_key", "VARCHAR", "The other normalized name."),
    ("score", "DOUBLE", "0 to 1, the more evidence the higher; null: there is none, but a decision."),
    (
        "evidence",
        "VARCHAR",
        "spelling, letters (one differs), word (one differs), abbreviation, short form, vectors, neighbors.",
    ),
    ("documents", "BIGINT", "Number of documents that name both."),
    ("neighbors", "BIGINT", "Number of entities that both are related to."),
    ("decision", "VARCHAR", "accept: one thing; reject: two things; unsure; empty: nobody has decided."),
    ("decided_by", "VARCHAR", "person, or the model that decided; empty: nobody."),
    order="ALL",
)

ENTITIES = table(
    "entities",
    "One row per thing named in the corpus, merged over all mentions.",
    "id",
    ID,
    NUMBER,
    ("title", "VARCHAR", "The most frequent form of the name."),
    ("type", "VARCHAR", "The type most mentions give; UNKNOWN when only relationships name it."),
    ("description", "VARCHAR", "Summary of the mentions' descriptions."),
    TEXT_UNIT_IDS,
    ("frequency", "BIGINT", "Number of text units that name it."),
    ("degree", "BIGINT", "Number of distinct neighbors."),
    *in_publication(_LINE_TOKENS),
    ("n_sentences", "BIGINT", "In how many sentences the embedded default found it; null: it did not extract any."),
    ("title_key", "VARCHAR", "The normalized name."),
    TYPES,
    order="human_readable_id",
)

RELATIONSHIPS = table(
    "relationships",
    "One row per pair of related entities, merged over all mentions in both directions.",
    "id",
    ID,
    NUMBER,
    ("source", "VARCHAR", "Title of the source entity, in the direction most mentions of the type give."),
    ("target", "VARCHAR", "Title of the target entity."),
    ("description", "VARCHAR", "Summary of the mentions' descriptions."),
    ("weight", "DOUBLE", "Sum of the mentions' strengths; times (1 + cosine) / 2 for co-occurrences."),
    *in_publication(("combined_degree", "BIGINT", "Sum of both ends' degrees.")),
    TEXT_UNIT_IDS,
    ("source_id", "VARCHAR", "Entity id of the source."),
    ("target_id", "VARCHAR", "Entity id of the target."),
    *in_publication(
        ("source_number", "BIGINT", "human_readable_id of the source entity."),
        ("target_number", "BIGINT", "human_readable_id of the target entity."),
        *_TIMES,
        _LINE_TOKENS,
    ),
    ("type", "VARCHAR", "The predicate most mentions give, the newest of several; empty when none is known."),
    ("relations", "VARCHAR", "Where there are several: all predicates, ← before those of the other direction, dated."),
    TYPES,
    order="human_readable_id",
)

COMMUNITIES = table(
    "communities",
    "One row per community of the hierarchical Leiden clustering, at the level where it arises.",
    "id",
    ID,
    NUMBER,
    ("community", "BIGINT", "Number of the community, unique over all levels; kept over re-indexing."),
    ("level", "BIGINT", "Level of the hierarchy; 0 is the coarsest."),
    ("parent", "BIGINT", "Number of the parent community; -1 at level 0."),
    ("children", "BIGINT[]", "Numbers of the communities it is split into."),
    ("title", "VARCHAR", "Name of the community."),
    ("entity_ids", "VARCHAR[]", "Its members, sorted."),
    ("relationship_ids", "VARCHAR[]", "Relationships with both ends inside, sorted."),
    ("text_unit_ids", "VARCHAR[]", "Text units of its members, sorted."),
    ("period", "VARCHAR", "Date of the newest document it draws on, ISO 8601."),
    *in_publication(_PERIOD_DATE),
    ("size", "BIGINT", "Number of members."),
    order="community",
)

COMMUNITY_MEMBERS = table(
    "community_members",
    "One row per entity and level: each entity is in exactly one community per level. A community that is "
    "not split further stays its members' community at all deeper levels.",
    "level entity_id",
    ("community", "BIGINT", "Number of the community."),
    ("level", "BIGINT", "Level of the hierarchy."),
    ("entity_id", "VARCHAR", "The member."),
    *in_publication(("entity_number", "BIGINT", "human_readable_id of the member.")),
    order="level, community, entity_number",
)

COMMUNITY_HISTORY = table(
    "community_history",
    "What happened to communities over re-indexing: born, died, changed, split, merged.",
    "revision event community_id other_id",
    ("revision", "BIGINT", "Revision of the clustering at which it happened, from 1."),
    *in_publication(
        ("publication", "BIGINT", "Number of the first publication with it."),
        ("published_at", "TIMESTAMP", "When that publication was made, UTC."),
    ),
    ("event", "VARCHAR", "born, died, changed, split or merged."),
    ("level", "BIGINT", "Level of the community."),
    ("community_id", "VARCHAR", "Id of the community."),
    ("other_id", "VARCHAR", "The other community of a split or merge."),
    ("jaccard", "DOUBLE", "Overlap of members with the predecessor, 0 to 1."),
    ("size", "BIGINT", "Number of members."),
    order="ALL",
)

CLUSTERED_EDGES = table(
    "clustered_edges",
    "The graph at the last clustering, which the next one compares with to find changes.",
    "source_id target_id",
    ("source_id", "VARCHAR", "The smaller of both entity ids."),
    ("target_id", "VARCHAR", "The other entity id."),
    ("weight", "DOUBLE", "Weight of the pair when it last counted as changed: by more than a tenth."),
)

COMMUNITY_REPORTS = table(
    "community_reports",
    "One row per community of two or more: what its part of the corpus is about, with findings and citations.",
    "id",
    ID,
    NUMBER,
    ("community", "BIGINT", "Number of the community."),
    ("level", "BIGINT", "Level of the community."),
    ("parent", "BIGINT", "Number of the parent community; -1 at level 0."),
    ("children", "BIGINT[]", "Numbers of the communities it is split into."),
    ("title", "VARCHAR", "Title of the report."),
    ("summary", "VARCHAR", "The report in short."),
    ("full_content", "VARCHAR", "The whole report as Markdown."),
    *in_publication(
        ("content_tokens", "BIGINT", "Tokens (o200k_base) of full_content, counted for searches that pack reports."),
        ("summary_tokens", "BIGINT", "Tokens (o200k_base) of the summary."),
        _LINE_TOKENS,
        ("short_line_tokens", "BIGINT", "The same with the summary in place of the content."),
        _PERIOD_DATE,
    ),
    ("rank", "DOUBLE", "Importance, 0 to 10."),
    ("rating_explanation", "VARCHAR", "Why it has this rank."),
    ("findings", "STRUCT(summary VARCHAR, explanation VARCHAR)[]", "The findings."),
    ("full_content_json", "VARCHAR", "The report as JSON."),
    ("period", "VARCHAR", "Date of the newest document it draws on."),
    ("size", "BIGINT", "Number of members of the community."),
    FINGERPRINT,
    ("context_tokens", "BIGINT", "Tokens of the context the report was written from."),
    ("model", "VARCHAR", "What wrote it."),
    order="community",
)

CITATIONS = table(
    "citations",
    "One row per reference [Data: …] in a community report, resolved.",
    "report_id table_name human_readable_id",
    ("report_id", "VARCHAR", "The report that cites."),
    ("table_name", "VARCHAR", "entities, relationships, covariates, community_reports or text_units; else as written."),
    ("human_readable_id", "BIGINT", "The number cited; null when it cannot be read."),
    ("cited_id", "VARCHAR", "Id of the cited row; null when the report was not written from such a row."),
    order="ALL",
)

EMBEDDINGS = table(
    "embeddings",
    "One row per text unit, entity with a relationship, and community report.",
    "kind id",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    *in_publication(("number", "BIGINT", "human_readable_id of the embedded row.")),
    ("id", "VARCHAR", "Id of the embedded row."),
    *in_index(FINGERPRINT),
    ("model", "VARCHAR", "The embedding model."),
    *in_index(("vector", "FLOAT[]", "The unit vector.")),
    *in_publication(("vector", "FLOAT[{dimensions}]", "The unit vector.")),
    order="kind, number",
)

_PROFILE_TYPES = 'STRUCT("type" VARCHAR, n BIGINT, definition VARCHAR, examples VARCHAR[])[]'
PROMPT_PROFILE = table(
    "operations.prompt_profile",
    "One row per version of the prompt profile: what prompts say about the documents.",
    "version",
    ("version", "BIGINT", "Number of the version, from 1."),
    ("id", "VARCHAR", "Hash of the profile when it was made; part of the fingerprints of what it concerns."),
    ("adopted", "BOOLEAN", "Whether it is in force, where no setting names another version."),
    ("domain", "VARCHAR", "What the documents are about."),
    ("language", "VARCHAR", "Language to write in, ISO 639-1; empty: that of the documents."),
    ("persona", "VARCHAR", "Who the model is to be."),
    ("rating_scale", "VARCHAR", "What makes a community important, for the ratings of reports."),
    ("entity_types", _PROFILE_TYPES, "Entity types with their mentions in the sample, meaning, and names."),
    ("relationship_types", _PROFILE_TYPES, "Relationship types that are preferred, with their mentions in the sample."),
    (
        "examples",
        'STRUCT(text_unit_id VARCHAR, "text" VARCHAR, '
        'entities STRUCT(title VARCHAR, "type" VARCHAR, description VARCHAR)[], relationships STRUCT(source VARCHAR, '
        'target VARCHAR, description VARCHAR, strength DOUBLE, "type" VARCHAR)[])[]',
        "Passages with the records that were found in them.",
    ),
    ("model", "VARCHAR", "The chat model that made it."),
    ("sample_ids", "VARCHAR[]", "The text units it was made from, in the order of their selection."),
    ("calls", "BIGINT", "Model calls paid for when it was made."),
    ("cost_usd", "DOUBLE", "US dollars of these calls."),
    ("made_at", "TIMESTAMP", "When, UTC."),
    order="ALL",
)

INDEX_ERRORS = table(
    "index_errors",
    "One row per thing that could not be indexed, with a hint. Rows of solved problems are deleted.",
    "batch source row_number stage error",
    BATCH,
    ("source", "VARCHAR", "File or text unit it concerns."),
    ("row_number", "BIGINT", "Row or line in the file; null when it concerns all of it."),
    ("stage", "VARCHAR", "load, date, extract, glean, dropped_records, …"),
    ("error", "VARCHAR", "What is wrong."),
    ("hint", "VARCHAR", "What to do about it."),
    ("first_seen", "TIMESTAMP", "When it was first seen, UTC."),
    order="ALL",
)

BATCH_STATE = table(
    "operations.batch_state",
    "One row per indexed batch: what of it is in the database.",
    "batch",
    BATCH,
    ("revision", "BIGINT", "Counts the commits of the batch, from 1."),
    ("digest", "VARCHAR", "Hash of the batch's files and of the settings it was indexed with."),
    ("extracted", "BOOLEAN", "False while only documents and text units are committed."),
    ("n_documents", "BIGINT", "Documents in it."),
    ("n_text_units", "BIGINT", "Text units in it."),
    ("n_errors", "BIGINT", "Rows of index_errors it has."),
    ("run_id", "VARCHAR", "Dagster run that committed it."),
    ("committed_at", "TIMESTAMP", "When, UTC."),
    ("origin", "VARCHAR", "Where an imported batch came from; null: the input folder."),
    ("read_with", "VARCHAR", "Hash of settings and code that its documents were read with; null: unknown."),
    order="ALL",
)

_USAGE = (  # of models
    ("calls", "BIGINT", "Model calls paid for."),
    ("ledger_hits", "BIGINT", "Answers that were in the ledger already."),
    ("prompt_tokens", "BIGINT", "Tokens sent in the calls paid for."),
    ("cached_tokens", "BIGINT", "Of them, those that the provider had in its prompt cache."),
    ("completion_tokens", "BIGINT", "Tokens answered in the calls paid for."),
    ("cost_usd", "DOUBLE", "US dollars of the calls paid for."),
    ("retries", "BIGINT", "Requests sent again."),
    ("failures", "BIGINT", "Calls without a usable answer."),
    ("dropped_records", "BIGINT", "Records of the wrong form that were left out of answers."),
    ("guessed_repairs", "BIGINT", "Answers in broken JSON whose repair may have lost something."),
    ("invented_claims", "BIGINT", "Claims left out because the text does not have the passage that they quote."),
    ("failed_gleanings", "BIGINT", "Gleanings without a usable answer; the next run tries them again."),
    ("seconds_waiting", "DOUBLE", "Seconds that calls waited for limits and retries, summed over calls."),
)
INDEX_RUNS = table(
    "operations.index_runs",
    "One row per stage that ran: how long it took and what it changed.",
    "run_id stage batch",
    ("run_id", "VARCHAR", "Dagster run."),
    ("stage", "VARCHAR", "Asset or group of assets."),
    ("batch", "VARCHAR", "Batch; null for a global stage, and for a batch that was purged."),
    ("committed_at", "TIMESTAMP", "When, UTC."),
    ("seconds", "DOUBLE", "Wall-clock seconds."),
    ("rows", "BIGINT", "Rows in the stage's main table."),
    ("inserted", "BIGINT", "Rows added or changed, over all tables of the stage."),
    ("deleted", "BIGINT", "Rows removed or changed, over all tables of the stage."),
    (
        "peak_mb",
        "BIGINT",
        "Most memory that the process has had during the stage, MB; null where the system does not measure it.",
    ),
    *_USAGE,
    (
        "usage",
        f"STRUCT(task VARCHAR, {', '.join(f'{name} {kind}' for name, kind, _ in _USAGE)})[]",
        "The same by task.",
    ),
    order="ALL",
)

INDEX_SETTINGS = table(
    "operations.index_settings",
    "The settings the index was built with.",
    "name",
    ("name", "VARCHAR", "Setting, as in GRAPHRAG_<NAME>."),
    ("value", "VARCHAR", "Its value; null: no limit."),
    order="ALL",
)

_VERSION = ("schema_version", "VARCHAR", "Hash of the tables; versions of graphrag_assets with others cannot use them.")
_PUBLICATION = (
    ("number", "BIGINT", "Number of the publication, from 1."),
    ("published_at", "TIMESTAMP", "When, UTC."),
    ("content_digest", "VARCHAR", "Identifies the content: equal digests mean equal content."),
    ("version", "VARCHAR", "Version of graphrag_assets that published it."),
    ("community_revision", "BIGINT", "The last revision of community_history in it; 0: none."),
    _VERSION,
)
PUBLICATIONS = table("publications", "One row per publication that was made.", "number", *_PUBLICATION)
PUBLICATION = table(
    "publication",
    "One row: which publication this file is.",
    "number",
    *in_publication(*_PUBLICATION),
    order="number",
)

NUMBERS = table(
    "numbers",
    "The register of human_readable_ids: an id keeps its number forever, and no number is reused.",
    "table_name id",
    ("table_name", "VARCHAR", "The table."),
    ("id", "VARCHAR", "The row's id."),
    ("human_readable_id", "BIGINT", "The row's number."),
    ("content", "VARCHAR", "Hash of the row's content, by which a moved row keeps its number; null where the id does."),
)

FACTS = (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, COVARIATES)
BATCH_TABLES = (DOCUMENTS, TEXT_UNITS, *FACTS)
GLOBAL_TABLES = (
    ENTITY_ALIASES,
    ENTITIES,
    RELATIONSHIPS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_HISTORY,
    COMMUNITY_REPORTS,
    CITATIONS,
    EMBEDDINGS,
    ENTITY_CANDIDATES,
)
INDEX_STATE = table(
    "index_state",
    "One row: what tells whether a stage is behind the batches.",
    "revision",
    ("revision", "BIGINT", "Incremented by each commit that changes a batch."),
)

REFRESH_STATE = table(
    "refresh_state",
    "Which revision of the index each stage, and the newest publication, were made from.",
    "stage",
    ("stage", "VARCHAR", "A stage, or published: the newest publication."),
    ("inputs", "VARCHAR", "The revision in index_state."),
    ("run_id", "VARCHAR", "Dagster run that made it."),
)

INDEX_OPTIONS = table(
    "index_options",
    "Settings given to a run in Dagster's launchpad, which stay with what the run wrote.",
    "batch name",
    ("batch", "VARCHAR", "The batch that was indexed with it; null: communities and reports."),
    ("name", "VARCHAR", "Setting, as in GRAPHRAG_<NAME>."),
    ("value", "VARCHAR", "Its value."),
)

_HASH_OF_TEXT = ("text", "UBIGINT", "Hash of the text and of what it is counted with.")
TOKEN_COUNTS = table(
    "token_counts",
    "The tokens of the rows of contexts. A publication counts what is not here, and deletes what it does not need.",
    "text",
    _HASH_OF_TEXT,
    ("tokens", "BIGINT", "Its tokens."),
)
INDEXED_TEXTS = table(
    "indexed_texts",
    "The texts in the inverted index. A publication reads what is not here, and deletes what it does not need.",
    "text",
    _HASH_OF_TEXT,
    ("n_words", "BIGINT", "Its number of words."),
)
POSTINGS = table(
    "postings",
    "Which text contains which word, how often.",
    "text word",
    _HASH_OF_TEXT,
    ("word", "UBIGINT", "Hash of the word and its language, as in words."),
    ("n", "BIGINT", "Occurrences of the word."),
)
WORDS = table(
    "words",
    "The words of the inverted index.",
    "word",
    ("word", "UBIGINT", "Hash of the word and its language."),
    ("term", "VARCHAR", "Its stem, without diacritics."),
    ("forms", "VARCHAR[]", "Every spelling that a question may have of it; none in scripts without spaces."),
)

INDEX_SCHEMA = table("index_schema", "One row: the version of the tables.", "schema_version", _VERSION)

OPERATION_TABLES = (
    INDEX_SCHEMA,
    INDEX_ERRORS,
    BATCH_STATE,
    INDEX_RUNS,
    INDEX_SETTINGS,
    INDEX_OPTIONS,
    PROMPT_PROFILE,
    PUBLICATIONS,
    INDEX_STATE,
    REFRESH_STATE,
    NUMBERS,
    SUMMARIZED,
    TOKEN_COUNTS,
    INDEXED_TEXTS,
    POSTINGS,
    WORDS,
    CLUSTERED_EDGES,
)
WORKING = (*BATCH_TABLES, *GLOBAL_TABLES, *OPERATION_TABLES)

EDGES = published_table(
    "search.edges",
    "Each relationship twice, once from either end: the adjacency list of the graph.",
    "entity neighbor",
    ("entity", "BIGINT", "human_readable_id of one end."),
    ("neighbor", "BIGINT", "human_readable_id of the other end."),
    ("relationship", "BIGINT", "human_readable_id of the relationship."),
    ("weight", "DOUBLE", "The relationship's weight."),
    ("combined_degree", "BIGINT", "The relationship's combined degree."),
    order="ALL",
)
ENTITY_TEXT_UNITS = published_table(
    "search.entity_text_units",
    "Which text units name which entity.",
    "entity text_unit",
    ("entity", "BIGINT", "human_readable_id of the entity."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("n_relationships", "BIGINT", "Relationships of the entity stated in the text unit."),
    order="ALL",
)
RELATIONSHIP_TEXT_UNITS = published_table(
    "search.relationship_text_units",
    "Which text units state which relationship.",
    "relationship text_unit",
    ("relationship", "BIGINT", "human_readable_id of the relationship."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    order="ALL",
)
ENTITY_COMMUNITIES = published_table(
    "search.entity_communities",
    "The community of each entity at each level.",
    "entity level",
    ("entity", "BIGINT", "human_readable_id of the entity."),
    ("level", "BIGINT", "Level of the hierarchy."),
    ("community", "BIGINT", "Number of the community."),
    order="ALL",
)
COMMUNITY_WEIGHTS = published_table(
    "search.community_weights",
    "How much text each community stands for.",
    "community",
    ("community", "BIGINT", "Number of the community."),
    ("text_units", "BIGINT", "Number of distinct text units that name a member."),
    order="community",
)
ENTITY_NAMES = published_table(
    "search.entity_names",
    "What entities are called: normalized titles, with and without diacritics and hyphens, and accepted aliases.",
    "name entity",
    ("name", "UBIGINT", "md5_number_lower of the normalized name."),
    ("entity", "BIGINT", "human_readable_id of the entity."),
    ("frequency", "BIGINT", "Number of text units that name the entity."),
    ("subject", "UBIGINT", "The entity's name in passage_subjects, whichever of its names this is."),
    order="ALL",
)
PASSAGE_SUBJECTS = published_table(
    "search.passage_subjects",
    "Which text units are about a thing: their title, a heading or an opening definition names it.",
    "name text_unit",
    ("name", "UBIGINT", "md5_number_lower of the thing's normalized name; of an entity, its title_key."),
    ("title", "VARCHAR", "The thing's name as the text unit has it."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("weight", "DOUBLE", "1 / number of text units about the thing."),
    ("rarity", "DOUBLE", "1 / log2(1 + number of text units that name the thing)."),
    order="name, text_unit",
)
PASSAGE_NAMES = published_table(
    "search.passage_names",
    "Which text units name a thing that others are about. Searches walk from here to passage_subjects.",
    "text_unit name",
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("name", "UBIGINT", "As in passage_subjects."),
    ("weight", "DOUBLE", "Share of the text unit's rank that passes to the thing: its rarity, at most 1 in all."),
    order="text_unit, name",
)
PUBLISHED_POSTINGS = published_table(
    "search.postings",
    "The inverted index for BM25: which text contains which term, how often.",
    "term number",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("term", "UBIGINT", "md5_number_lower of the kind, a space and the term: see word_forms."),
    ("number", "BIGINT", "human_readable_id of the row."),
    ("n", "BIGINT", "Occurrences of the term in its text."),
    ("length", "BIGINT", "Number of words of its text."),
    order="term, number",
)
POSTING_TERMS = published_table(
    "search.posting_terms",
    "The terms of the inverted index.",
    "term",
    ("term", "UBIGINT", "As in postings."),
    ("texts", "BIGINT", "Number of texts of the kind that contain it."),
    order="term",
)
POSTING_STATISTICS = published_table(
    "search.posting_statistics",
    "What the inverted index covers.",
    "kind",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("texts", "BIGINT", "Number of texts."),
    ("mean_length", "DOUBLE", "Their mean number of words."),
    order="kind",
)
LANGUAGES = published_table(
    "search.languages",
    "The languages of the documents.",
    "language",
    ("language", "VARCHAR", "ISO 639-1 code."),
    ("documents", "BIGINT", "Number of documents in it."),
    ("stop_words", "VARCHAR[]", "Words with grammar instead of content: questions are not searched by them."),
    order="documents DESC, language",
)
WORD_FORMS = published_table(
    "search.word_forms",
    "The words of the indexed texts, and the terms that stand for them in the inverted index.",
    "form term",
    ("beginning", "VARCHAR", "First three characters of the form; the table is sorted by it."),
    ("form", "VARCHAR", "The word in lower case, without diacritics, or with ae for ä."),
    ("term", "VARCHAR", "Its stem in the language of a text that has it, without diacritics."),
    ("uses", "BIGINT", "How many words of how many texts of all kinds have this form and term; never zero."),
    order="ALL",
)
DATED_FACTS = published_table(
    "search.facts",
    "The dated statements of which one supersedes another: claims, and mentions of relationships.",
    "id",
    ("id", "VARCHAR", "Id of the claim, or of the row of relationship_mentions."),
    ("kind", "VARCHAR", "claim or relationship."),
    ("number", "BIGINT", "human_readable_id of the claim or relationship."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("slot", "UBIGINT", "Hash of what has one value at a time: subject, family of predicates, object slot."),
    ("value", "UBIGINT", "Hash of the value that it states."),
    ("stated_end", "DATE", "The first day on which it no longer holds, by the text."),
    *_TIMES,
    order="slot, valid_from, id",
)
LLM_CALLS = published_table(
    "llm_calls",
    "The ledger's entries: every model call that was paid for. A row of embeddings is one text.",
    "key",
    ("key", "VARCHAR", "Hash of all that determines the answer."),
    (
        "kind",
        "VARCHAR",
        "chat or embedding; invalid: paid for, not usable; replaced, purged: paid for, the answer is gone.",
    ),
    ("task", "VARCHAR", "What was asked: extract_graph, community_report, …"),
    ("provider", "VARCHAR", "Provider, as litellm names it."),
    ("model", "VARCHAR", "Model at the provider."),
    ("parameters", "VARCHAR", "Parameters of the call, JSON."),
    ("prompt_tokens", "BIGINT", "Tokens sent."),
    ("cached_tokens", "BIGINT", "Of them, those that the provider had in its prompt cache."),
    ("completion_tokens", "BIGINT", "Tokens answered."),
    ("cost_usd", "DOUBLE", "US dollars."),
    ("seconds", "DOUBLE", "Seconds until the answer, waiting for limits not counted."),
    ("batch", "VARCHAR", "Batch it was asked for; null for what belongs to none."),
    ("text_unit_id", "VARCHAR", "The text unit it was asked for."),
    ("run_id", "VARCHAR", "Dagster run; null for questions."),
    ("created_at", "TIMESTAMP", "When, UTC."),
    order="created_at, key",
)


def _published(*tables: Table) -> tuple[Table, ...]:
    return tuple(each.published for each in tables if each.published)


MAIN = _published(
    DOCUMENTS,
    TEXT_UNITS,
    ENTITIES,
    RELATIONSHIPS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    COVARIATES,
    COMMUNITY_MEMBERS,
    COMMUNITY_HISTORY,
    ENTITY_MENTIONS,
    RELATIONSHIP_MENTIONS,
    ENTITY_ALIASES,
    ENTITY_CANDIDATES,
    CITATIONS,
    INDEX_ERRORS,
    EMBEDDINGS,
    LLM_CALLS,
    PUBLICATION,
)
OPERATIONS = _published(BATCH_STATE, INDEX_RUNS, INDEX_SETTINGS, PROMPT_PROFILE)
SEARCH = _published(
    EDGES,
    ENTITY_TEXT_UNITS,
    RELATIONSHIP_TEXT_UNITS,
    ENTITY_COMMUNITIES,
    COMMUNITY_WEIGHTS,
    ENTITY_NAMES,
    PASSAGE_SUBJECTS,
    PASSAGE_NAMES,
    PUBLISHED_POSTINGS,
    POSTING_TERMS,
    POSTING_STATISTICS,
    LANGUAGES,
    WORD_FORMS,
    DATED_FACTS,
)
PUBLISHED = (*MAIN, *OPERATIONS, *SEARCH)

_VIEWS = [
    files("graphrag_assets.store").joinpath(f"sql/{n}.sql").read_text()
    for n in ("resolved_claims", "claims_taken_back")
]
_COLUMNS = ((t.sql_name, c.name, c.type) for t in (*WORKING, *PUBLISHED) for c in t.columns)
SCHEMA_VERSION = stable_id(*_VIEWS, *_COLUMNS)[:8]
"""The version of all tables and views, in the working database and in each publication.

There are no migrations: an index of another version is derived again from its input, and paid answers come from the
ledger."""
