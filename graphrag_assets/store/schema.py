"""The schema, declared once: every table and column with its type and its meaning.

`WORKING` is what assets write; `PUBLISHED` (in `publication_schema`) is what people and the query module read.
Column names follow GraphRAG 3's output tables, as a superset. There are no primary or foreign keys: batch
replacement is 24 times slower with them, so asset checks guard keys instead (see docs/architecture.md).
"""

from dataclasses import dataclass
from pathlib import Path

_INCOMPRESSIBLE = ("id", "fingerprint", "source", "target", "form", "term", "vector")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its DuckDB type, and what it means."""

    name: str
    type: str
    comment: str

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
    """A table: its name, what one row is, its key columns, its columns in order, and its schema in the file."""

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    schema: str = "main"

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


def table(name: str, comment: str, key: str, *columns: tuple[str, str, str]) -> Table:
    """A `Table`: its name, with a schema or without, key columns separated by blanks, (name, type, comment) tuples."""
    schema, _, name = name.rpartition(".")
    return Table(name, comment, tuple(key.split()), tuple(Column(*column) for column in columns), schema or "main")


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
    BATCH,
    ("source", "VARCHAR", "Path of the file, relative to the input folder."),
    ("row_number", "BIGINT", "1-based row in a structured file; null for a text file."),
    ("title", "VARCHAR", "Title column, first heading, or file name."),
    ("text", "VARCHAR", "The full text; character spans of text units refer to it."),
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
)

TEXT_UNITS = table(
    "text_units",
    "One row per chunk of a document: the unit of extraction and of citation.",
    "id",
    ID,
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
    ("n_sentences", "BIGINT", "Sentences with at least one letter or digit."),
    ("page", "BIGINT", "Page or slide on which the text begins; null for a file without pages."),
    ("sheet", "VARCHAR", "Sheet of a workbook that the row stands in."),
    ("time", "VARCHAR", "Time at which the text begins, of subtitles and chats, as the file has it."),
    EXTRACTOR,
)

ENTITY_MENTIONS = table(
    "entity_mentions",
    "One row per entity and text unit that names it, as extracted. Facts: entities are derived from these.",
    "id",
    ID,
    BATCH,
    DOCUMENT_ID,
    TEXT_UNIT_ID,
    ("title", "VARCHAR", "The name as the text has it."),
    ("title_key", "VARCHAR", "The normalized name under which mentions are grouped."),
    ("type", "VARCHAR", "Entity type given by this extraction."),
    ("description", "VARCHAR", "What this text unit says of the entity."),
    ("n_sentences", "BIGINT", "In how many sentences of the unit it is named."),
    EXTRACTOR,
)

RELATIONSHIP_MENTIONS = table(
    "relationship_mentions",
    "One row per relation of two entities and text unit that states it, as extracted.",
    "id",
    ID,
    BATCH,
    DOCUMENT_ID,
    TEXT_UNIT_ID,
    ("source", "VARCHAR", "Name of the entity the relation starts from."),
    ("target", "VARCHAR", "Name of the other entity."),
    ("source_key", "VARCHAR", "Normalized source name."),
    ("target_key", "VARCHAR", "Normalized target name."),
    ("type", "VARCHAR", "Short upper-case predicate, such as COMMANDED; empty when none is known."),
    ("description", "VARCHAR", "What the text unit says of the relation."),
    ("strength", "DOUBLE", "1 to 10 from a language model; number of sentences from the embedded default."),
    EXTRACTOR,
)

COVARIATES = table(
    "covariates",
    "One row per claim: a dated or quantified statement about an entity, with its source text.",
    "id",
    ID,
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
    ("status", "VARCHAR", "TRUE, FALSE or SUSPECTED."),
    ("start_date", "VARCHAR", "ISO 8601, as precise as known: 1866, 1866-07 or 1866-07-27."),
    ("end_date", "VARCHAR", "ISO 8601, as precise as known."),
    ("source_text", "VARCHAR", "The quoted passage, literally in the text unit."),
    EXTRACTOR,
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
    ("n_sentences", "BIGINT", "In how many sentences the embedded default found it; null: it did not extract any."),
    ("title_key", "VARCHAR", "The normalized name."),
    TYPES,
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
    TEXT_UNIT_IDS,
    ("source_id", "VARCHAR", "Entity id of the source."),
    ("target_id", "VARCHAR", "Entity id of the target."),
    ("type", "VARCHAR", "The predicate most mentions give, the newest of several; empty when none is known."),
    ("relations", "VARCHAR", "Where there are several: all predicates, ← before those of the other direction, dated."),
    TYPES,
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
    ("size", "BIGINT", "Number of members."),
)

COMMUNITY_MEMBERS = table(
    "community_members",
    "One row per entity and level: each entity is in exactly one community per level. A community that is "
    "not split further stays its members' community at all deeper levels.",
    "level entity_id",
    ("community", "BIGINT", "Number of the community."),
    ("level", "BIGINT", "Level of the hierarchy."),
    ("entity_id", "VARCHAR", "The member."),
)

COMMUNITY_HISTORY = table(
    "community_history",
    "What happened to communities over re-indexing: born, died, changed, split, merged.",
    "revision event community_id other_id",
    ("revision", "BIGINT", "Revision of the clustering at which it happened, from 1."),
    ("event", "VARCHAR", "born, died, changed, split or merged."),
    ("level", "BIGINT", "Level of the community."),
    ("community_id", "VARCHAR", "Id of the community."),
    ("other_id", "VARCHAR", "The other community of a split or merge."),
    ("jaccard", "DOUBLE", "Overlap of members with the predecessor, 0 to 1."),
    ("size", "BIGINT", "Number of members."),
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
    ("rank", "DOUBLE", "Importance, 0 to 10."),
    ("rating_explanation", "VARCHAR", "Why it has this rank."),
    ("findings", "STRUCT(summary VARCHAR, explanation VARCHAR)[]", "The findings."),
    ("full_content_json", "VARCHAR", "The report as JSON."),
    ("period", "VARCHAR", "Date of the newest document it draws on."),
    ("size", "BIGINT", "Number of members of the community."),
    FINGERPRINT,
    ("context_tokens", "BIGINT", "Tokens of the context the report was written from."),
    ("model", "VARCHAR", "What wrote it."),
)

CITATIONS = table(
    "citations",
    "One row per reference [Data: …] in a community report, resolved.",
    "report_id table_name human_readable_id",
    ("report_id", "VARCHAR", "The report that cites."),
    ("table_name", "VARCHAR", "entities, relationships, covariates, community_reports or text_units; else as written."),
    ("human_readable_id", "BIGINT", "The number cited; null when it cannot be read."),
    ("cited_id", "VARCHAR", "Id of the cited row; null when the report was not written from such a row."),
)

EMBEDDINGS = table(
    "embeddings",
    "One row per text unit, entity with a relationship, and community report.",
    "kind id",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("id", "VARCHAR", "Id of the embedded row."),
    FINGERPRINT,
    ("model", "VARCHAR", "The embedding model."),
    ("vector", "FLOAT[]", "The unit vector."),
)

_PROFILE_TYPES = 'STRUCT("type" VARCHAR, n BIGINT, definition VARCHAR, examples VARCHAR[])[]'
PROMPT_PROFILE = table(
    "prompt_profile",
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
)

BATCH_STATE = table(
    "batch_state",
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
    "index_runs",
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
)

INDEX_SETTINGS = table(
    "index_settings",
    "The settings the index was built with.",
    "name",
    ("name", "VARCHAR", "Setting, as in GRAPHRAG_<NAME>."),
    ("value", "VARCHAR", "Its value; null: no limit."),
)

_VERSION = ("schema_version", "VARCHAR", "Hash of the tables; versions of graphrag_assets with others cannot use them.")
PUBLICATIONS = table(
    "publications",
    "One row per publication that was made.",
    "number",
    ("number", "BIGINT", "Number of the publication, from 1."),
    ("published_at", "TIMESTAMP", "When, UTC."),
    ("content_digest", "VARCHAR", "Identifies the content: equal digests mean equal content."),
    ("version", "VARCHAR", "Version of graphrag_assets that published it."),
    ("community_revision", "BIGINT", "The last revision of community_history in it; 0: none."),
    _VERSION,
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
    ("stage", "VARCHAR", "A stage, graph, or published."),
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

CHANGED_ROWS = table(
    "changed_rows",
    "Rows written since a reader of the change log last looked, see change_marks.",
    "revision table_name id concerns",
    ("revision", "BIGINT", "Number of the write, from 1."),
    ("table_name", "VARCHAR", "The table."),
    ("id", "VARCHAR", "What identifies the row; null: most rows of the table have changed."),
    ("concerns", "VARCHAR[]", "Keys of other rows that it concerns, such as the name of a mention."),
)

CHANGE_MARKS = table(
    "change_marks",
    "Up to which write each reader of the change log has derived its tables.",
    "reader",
    ("reader", "VARCHAR", "A stage, or publication."),
    ("revision", "BIGINT", "The last write that it has seen."),
    ("made_with", "VARCHAR", "Hash of settings and code; if they differ, everything is recomputed."),
    ("tables", "VARCHAR[]", "The tables whose changes it reads."),
)

LOGGED_COUNTS = table(
    "logged_counts",
    "Rows of each logged table after its last logged write: another number was written past the change log.",
    "table_name",
    ("table_name", "VARCHAR", "The table."),
    ("rows", "BIGINT", "Its rows."),
)

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
    CHANGED_ROWS,
    CHANGE_MARKS,
    LOGGED_COUNTS,
)
WORKING = (*BATCH_TABLES, *GLOBAL_TABLES, *OPERATION_TABLES)
