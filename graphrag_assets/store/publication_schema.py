"""The tables of a publication: the working tables, numbered and linked, plus tables for searching.

They are in three schemas. `main` has what a person queries; `search` has what queries of this package read (bridge
tables, the BM25 index, the passage graph, binary codes); `operations` has records of runs and settings.
Every publication builds all of them from the working tables (`sql/publish.sql`). Integer keys beside the string ids
and sorted bridge tables make a search a few milliseconds of SQL.
"""

from dataclasses import replace

from graphrag_assets.ids import stable_id
from graphrag_assets.store import schema as s
from graphrag_assets.store.resolved_claims import CLAIM_VIEWS
from graphrag_assets.store.schema import Table, table


def _extended(base: Table, *more: tuple[str, str, str], after: str = "id") -> Table:
    """`base` with the columns `more` inserted behind the column `after`."""
    added = table(base.name, base.comment, " ".join(base.key), *more).columns
    at = base.column_names.index(after) + 1
    return replace(base, columns=base.columns[:at] + added + base.columns[at:])


_TEXT_UNIT_NUMBER = ("text_unit_number", "BIGINT", "human_readable_id of the text unit.")
_LINE_TOKENS = (
    "line_tokens",
    "BIGINT",
    "Tokens (o200k_base) of the row as a context shows it, counted for searches.",
)
_TIMES = (
    ("stated_on", "DATE", "The date of the newest document that states it, else the date in the text."),
    ("valid_from", "DATE", "Since when it holds: the date in the text, else of the first document that states it."),
    ("valid_until", "DATE", "The first day on which it no longer holds, by the text or a later statement."),
    ("superseded_by", "VARCHAR", "Id of the row that holds from then on; see search.facts."),
)
_PERIOD_DATE = ("period_date", "DATE", "period as a date; null when it is none.")

DOCUMENTS = _extended(
    _extended(s.DOCUMENTS, s.NUMBER),
    ("text_unit_ids", "VARCHAR[]", "Its text units, in order."),
    ("created_at", "TIMESTAMP", "creation_date as a time, UTC; null when it is none."),
    after="text",
)
TEXT_UNITS = _extended(
    _extended(s.TEXT_UNITS, s.NUMBER),
    ("entity_ids", "VARCHAR[]", "Entities named in it, sorted."),
    ("relationship_ids", "VARCHAR[]", "Relationships stated in it, sorted."),
    ("covariate_ids", "VARCHAR[]", "Claims made in it, sorted."),
    _LINE_TOKENS,
    after="n_tokens",
)
ENTITIES = _extended(
    s.ENTITIES,
    _LINE_TOKENS,
    after="degree",
)
RELATIONSHIPS = _extended(
    _extended(s.RELATIONSHIPS, ("combined_degree", "BIGINT", "Sum of both ends' degrees."), after="weight"),
    ("source_number", "BIGINT", "human_readable_id of the source entity."),
    ("target_number", "BIGINT", "human_readable_id of the target entity."),
    *_TIMES,
    _LINE_TOKENS,
    after="target_id",
)
COVARIATES = _extended(
    _extended(s.COVARIATES, s.NUMBER),
    ("subject_number", "BIGINT", "human_readable_id of the subject entity; null when it is no entity."),
    ("object_number", "BIGINT", "human_readable_id of the object entity; null when it is no entity."),
    _TEXT_UNIT_NUMBER,
    _LINE_TOKENS,
    ("starts_on", "DATE", "The first day of start_date; null when it is no date."),
    ("ends_on", "DATE", "The last day of end_date; null when it is no date."),
    *_TIMES,
    after="object_key",
)
ENTITY_MENTIONS = _extended(
    s.ENTITY_MENTIONS,
    ("entity_number", "BIGINT", "human_readable_id of the entity it became part of; null when it was left out."),
    _TEXT_UNIT_NUMBER,
    after="text_unit_id",
)
RELATIONSHIP_MENTIONS = _extended(
    s.RELATIONSHIP_MENTIONS,
    ("relationship_number", "BIGINT", "human_readable_id of the relationship; null when it was left out."),
    ("source_number", "BIGINT", "human_readable_id of the source entity; null when it was left out."),
    ("target_number", "BIGINT", "human_readable_id of the target entity; null when it was left out."),
    _TEXT_UNIT_NUMBER,
    after="text_unit_id",
)
COMMUNITY_MEMBERS = _extended(
    s.COMMUNITY_MEMBERS,
    ("entity_number", "BIGINT", "human_readable_id of the member."),
    after="entity_id",
)
COMMUNITY_REPORTS = _extended(
    s.COMMUNITY_REPORTS,
    ("content_tokens", "BIGINT", "Tokens (o200k_base) of full_content, counted for searches that pack reports."),
    ("summary_tokens", "BIGINT", "Tokens (o200k_base) of the summary."),
    _LINE_TOKENS,
    ("short_line_tokens", "BIGINT", "The same with the summary in place of the content."),
    _PERIOD_DATE,
    after="full_content",
)
COMMUNITIES = _extended(s.COMMUNITIES, _PERIOD_DATE, after="period")
COMMUNITY_HISTORY = _extended(
    s.COMMUNITY_HISTORY,
    ("publication", "BIGINT", "Number of the first publication with it."),
    ("published_at", "TIMESTAMP", "When that publication was made, UTC."),
    after="revision",
)
EMBEDDINGS = table(
    "embeddings",
    s.EMBEDDINGS.comment,
    "kind number",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("number", "BIGINT", "human_readable_id of the embedded row."),
    ("id", "VARCHAR", "Id of the embedded row."),
    ("model", "VARCHAR", "The embedding model."),
    ("vector", "FLOAT[{dimensions}]", "The unit vector."),
)

EDGES = table(
    "search.edges",
    "Each relationship twice, once from either end: the adjacency list of the graph.",
    "entity neighbor",
    ("entity", "BIGINT", "human_readable_id of one end."),
    ("neighbor", "BIGINT", "human_readable_id of the other end."),
    ("relationship", "BIGINT", "human_readable_id of the relationship."),
    ("weight", "DOUBLE", "The relationship's weight."),
    ("combined_degree", "BIGINT", "The relationship's combined degree."),
)
ENTITY_TEXT_UNITS = table(
    "search.entity_text_units",
    "Which text units name which entity.",
    "entity text_unit",
    ("entity", "BIGINT", "human_readable_id of the entity."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("n_relationships", "BIGINT", "Relationships of the entity stated in the text unit."),
)
RELATIONSHIP_TEXT_UNITS = table(
    "search.relationship_text_units",
    "Which text units state which relationship.",
    "relationship text_unit",
    ("relationship", "BIGINT", "human_readable_id of the relationship."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
)
ENTITY_COMMUNITIES = table(
    "search.entity_communities",
    "The community of each entity at each level.",
    "entity level",
    ("entity", "BIGINT", "human_readable_id of the entity."),
    ("level", "BIGINT", "Level of the hierarchy."),
    ("community", "BIGINT", "Number of the community."),
)
COMMUNITY_WEIGHTS = table(
    "search.community_weights",
    "How much text each community stands for.",
    "community",
    ("community", "BIGINT", "Number of the community."),
    ("text_units", "BIGINT", "Number of distinct text units that name a member."),
)
ENTITY_NAMES = table(
    "search.entity_names",
    "What entities are called: normalized titles, with and without diacritics and hyphens, and accepted aliases.",
    "name entity",
    ("name", "UBIGINT", "md5_number_lower of the normalized name."),
    ("entity", "BIGINT", "human_readable_id of the entity."),
    ("frequency", "BIGINT", "Number of text units that name the entity."),
    ("subject", "UBIGINT", "The entity's name in passage_subjects, whichever of its names this is."),
)
PASSAGE_SUBJECTS = table(
    "search.passage_subjects",
    "Which text units are about a thing: their title, a heading or an opening definition names it.",
    "name text_unit",
    ("name", "UBIGINT", "md5_number_lower of the thing's normalized name; of an entity, its title_key."),
    ("title", "VARCHAR", "The thing's name as the text unit has it."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("weight", "DOUBLE", "1 / number of text units about the thing."),
    ("rarity", "DOUBLE", "1 / log2(1 + number of text units that name the thing)."),
)
PASSAGE_NAMES = table(
    "search.passage_names",
    "Which text units name a thing that others are about. Searches walk from here to passage_subjects.",
    "text_unit name",
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("name", "UBIGINT", "As in passage_subjects."),
    ("weight", "DOUBLE", "Share of the text unit's rank that passes to the thing: its rarity, at most 1 in all."),
)
HEADING_FORMS = table(
    "search.heading_forms",
    "What titles and headings name: themselves, and themselves without a qualifier in parentheses.",
    "heading form",
    ("heading", "VARCHAR", "The title or heading."),
    ("form", "VARCHAR", "What it names."),
    ("name", "UBIGINT", "md5_number_lower of the form's normalized name."),
    ("words", "VARCHAR[]", "Its distinct words, as in word_forms."),
    ("is_name", "BOOLEAN", "Whether it is written as a name."),
)
SOUGHT_TITLES = table(
    "search.sought_titles",
    "The titles and headings that were looked for in all texts: those whose words are rare enough.",
    "form",
    ("form", "VARCHAR", "As in heading_forms."),
)
TITLES_IN_TEXT = table(
    "search.titles_in_text",
    "Which text units have which of these in their text.",
    "form text_unit",
    ("form", "VARCHAR", "As in heading_forms."),
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
)
DEFINITIONS = table(
    "search.definitions",
    "Which text units begin with a definition of the first thing they name.",
    "text_unit",
    ("text_unit", "BIGINT", "human_readable_id of the text unit."),
    ("name", "UBIGINT", "md5_number_lower of the thing's title_key."),
    ("form", "VARCHAR", "The thing's name as the text unit has it."),
)
POSTINGS = table(
    "search.postings",
    "The inverted index for BM25: which text contains which term, how often.",
    "term number",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("term", "UBIGINT", "md5_number_lower of the kind, a space and the term: see word_forms."),
    ("number", "BIGINT", "human_readable_id of the row."),
    ("n", "BIGINT", "Occurrences of the term in its text."),
    ("length", "BIGINT", "Number of words of its text."),
)
POSTING_TERMS = table(
    "search.posting_terms",
    "The terms of the inverted index.",
    "term",
    ("term", "UBIGINT", "As in postings."),
    ("texts", "BIGINT", "Number of texts of the kind that contain it."),
)
POSTING_STATISTICS = table(
    "search.posting_statistics",
    "What the inverted index covers.",
    "kind",
    ("kind", "VARCHAR", "text_unit, entity or community_report."),
    ("texts", "BIGINT", "Number of texts."),
    ("mean_length", "DOUBLE", "Their mean number of words."),
)
LANGUAGES = table(
    "search.languages",
    "The languages of the documents.",
    "language",
    ("language", "VARCHAR", "ISO 639-1 code."),
    ("documents", "BIGINT", "Number of documents in it."),
    ("stop_words", "VARCHAR[]", "Words with grammar instead of content: questions are not searched by them."),
)
WORD_FORMS = table(
    "search.word_forms",
    "The words of the indexed texts, and the terms that stand for them in the inverted index.",
    "form term",
    ("beginning", "VARCHAR", "First three characters of the form; the table is sorted by it."),
    ("form", "VARCHAR", "The word in lower case, without diacritics, or with ae for ä."),
    ("term", "VARCHAR", "Its stem in the language of a text that has it, without diacritics."),
    ("uses", "BIGINT", "How many words of how many texts of all kinds have this form and term; never zero."),
)
FACTS = table(
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
)
LLM_CALLS = table(
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
)
PUBLICATION = replace(s.PUBLICATIONS, name="publication", comment="One row: which publication this file is.")

MAIN = (
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
    s.ENTITY_ALIASES,
    s.ENTITY_CANDIDATES,
    s.CITATIONS,
    s.INDEX_ERRORS,
    EMBEDDINGS,
    LLM_CALLS,
    PUBLICATION,
)
OPERATIONS = tuple(
    replace(each, schema="operations")
    for each in (
        s.BATCH_STATE,
        s.INDEX_RUNS,
        s.INDEX_SETTINGS,
        s.PROMPT_PROFILE,
    )
)
SEARCH = (
    EDGES,
    ENTITY_TEXT_UNITS,
    RELATIONSHIP_TEXT_UNITS,
    ENTITY_COMMUNITIES,
    COMMUNITY_WEIGHTS,
    ENTITY_NAMES,
    PASSAGE_SUBJECTS,
    PASSAGE_NAMES,
    HEADING_FORMS,
    SOUGHT_TITLES,
    TITLES_IN_TEXT,
    DEFINITIONS,
    POSTINGS,
    POSTING_TERMS,
    POSTING_STATISTICS,
    LANGUAGES,
    WORD_FORMS,
    FACTS,
)
PUBLISHED = (*MAIN, *OPERATIONS, *SEARCH)
_COLUMNS = ((t.sql_name, c.name, c.type) for t in (*s.WORKING, *PUBLISHED) for c in t.columns)
SCHEMA_VERSION = stable_id(CLAIM_VIEWS, *_COLUMNS)[:8]
"""The version of all tables and views, in the working database and in each publication.

There are no migrations: an index of another version is derived again from its input, and paid answers come from the
ledger."""
