-- The tables of the index (index), of a publication (publication), or of both. The comments become those of the database:
-- before a table what one row is, behind a column what it means and, in parentheses, which of both has it alone. Behind a
-- table's name are its key and the order in which a publication has its rows.

-- One row per input document: a text file, or one row of a structured file.
CREATE TABLE documents (  -- both; key: id; order: human_readable_id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- (publication) Small number for prompts and citations; never reused.
    batch VARCHAR,  -- The batch (partition) the row stems from.
    source VARCHAR,  -- Path of the file, relative to the input folder.
    row_number BIGINT,  -- 1-based row in a structured file; null for a text file.
    title VARCHAR,  -- Title column, first heading, or file name.
    text VARCHAR,  -- The full text; character spans of text units refer to it.
    text_unit_ids VARCHAR[],  -- (publication) Its text units, in order.
    creation_date VARCHAR,  -- Time of the file's last change, ISO 8601, UTC; null for a row of a table.
    document_date DATE,  -- What the document says its date is, or else its file's name; null if neither does.
    raw_data JSON,  -- The other columns of a structured file's row.
    content_hash VARCHAR,  -- Hash of title, text and raw_data; differs after an edit.
    format VARCHAR,  -- File format it was read from.
    encoding VARCHAR,  -- Encoding of the text file it was read from, such as utf-8 or cp1252.
    text_column VARCHAR,  -- Column of a table that its text is from; * for all columns of the row; null for other files.
    title_column VARCHAR,  -- Column of a table that its title is from; null if the table has none.
    language VARCHAR,  -- Language of the text, ISO 639-1; und if unidentified.
    n_tokens BIGINT,  -- Tokens of the text.
    places STRUCT(start_char BIGINT, kind VARCHAR, value VARCHAR)[]  -- From which character on which page, slide, sheet or time holds; empty for a file without places.
);
-- One row per chunk of a document: the unit of extraction and of citation.
CREATE TABLE text_units (  -- both; key: id; order: human_readable_id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- (publication) Small number for prompts and citations; never reused.
    batch VARCHAR,  -- The batch (partition) the row stems from.
    document_id VARCHAR,  -- The document the row stems from.
    ordinal BIGINT,  -- Position in the document, from 0.
    start_char BIGINT,  -- Characters of documents.text before its first one.
    end_char BIGINT,  -- Characters of documents.text up to its last one: documents.text[start_char + 1:end_char] in SQL, which counts from 1; documents.text[start_char:end_char] in Python.
    text VARCHAR,  -- The text of the unit.
    headings VARCHAR[],  -- Document title and headings that the unit stands under or begins: what it is about.
    context VARCHAR,  -- What is searched and embedded with the text, not part of it: document title › headings, none, or what a chat model wrote of the unit's place in its document.
    n_tokens BIGINT,  -- Tokens of the text.
    entity_ids VARCHAR[],  -- (publication) Entities named in it, sorted.
    relationship_ids VARCHAR[],  -- (publication) Relationships stated in it, sorted.
    covariate_ids VARCHAR[],  -- (publication) Claims made in it, sorted.
    line_tokens BIGINT,  -- (publication) Tokens (o200k_base) of the row as a context shows it, counted for searches.
    n_sentences BIGINT,  -- Sentences with at least one letter or digit.
    page BIGINT,  -- Page or slide on which the text begins; null for a file without pages.
    sheet VARCHAR,  -- Sheet of a workbook that the row stands in.
    time VARCHAR,  -- Time at which the text begins, of subtitles and chats, as the file has it.
    extractor VARCHAR  -- What extracted it: method or model, prompt and options. Null: not done yet.
);
-- One row per thing named in the corpus, merged over all mentions.
CREATE TABLE entities (  -- both; key: id; order: human_readable_id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- Small number for prompts and citations; never reused.
    title VARCHAR,  -- The most frequent form of the name.
    type VARCHAR,  -- The type most mentions give; UNKNOWN when only relationships name it.
    description VARCHAR,  -- Summary of the mentions' descriptions.
    text_unit_ids VARCHAR[],  -- The text units it is mentioned in, sorted.
    frequency BIGINT,  -- Number of text units that name it.
    degree BIGINT,  -- Number of distinct neighbors.
    line_tokens BIGINT,  -- (publication) Tokens (o200k_base) of the row as a context shows it, counted for searches.
    n_sentences BIGINT,  -- In how many sentences the embedded default found it; null: it did not extract any.
    title_key VARCHAR,  -- The normalized name.
    types STRUCT("type" VARCHAR, n BIGINT)[]  -- All types given to it, with their mentions.
);
-- One row per pair of related entities, merged over all mentions in both directions.
CREATE TABLE relationships (  -- both; key: id; order: human_readable_id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- Small number for prompts and citations; never reused.
    source VARCHAR,  -- Title of the source entity, in the direction most mentions of the type give.
    target VARCHAR,  -- Title of the target entity.
    description VARCHAR,  -- Summary of the mentions' descriptions.
    weight DOUBLE,  -- Sum of the mentions' strengths; times (1 + cosine) / 2 for co-occurrences.
    combined_degree BIGINT,  -- (publication) Sum of both ends' degrees.
    text_unit_ids VARCHAR[],  -- The text units it is mentioned in, sorted.
    source_id VARCHAR,  -- Entity id of the source.
    target_id VARCHAR,  -- Entity id of the target.
    source_number BIGINT,  -- (publication) human_readable_id of the source entity.
    target_number BIGINT,  -- (publication) human_readable_id of the target entity.
    stated_on DATE,  -- (publication) The date of the newest document that states it, else the date in the text.
    valid_from DATE,  -- (publication) Since when it holds: the date in the text, else of the first document that states it.
    valid_until DATE,  -- (publication) The first day on which it no longer holds, by the text or a later statement.
    superseded_by VARCHAR,  -- (publication) Id of the row that holds from then on; see search.facts.
    line_tokens BIGINT,  -- (publication) Tokens (o200k_base) of the row as a context shows it, counted for searches.
    type VARCHAR,  -- The predicate most mentions give, the newest of several; empty when none is known.
    relations VARCHAR,  -- Where there are several: all predicates, ← before those of the other direction, dated.
    types STRUCT("type" VARCHAR, n BIGINT)[]  -- All types given to it, with their mentions.
);
-- One row per community of the hierarchical Leiden clustering, at the level where it arises.
CREATE TABLE communities (  -- both; key: id; order: community
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- Small number for prompts and citations; never reused.
    community BIGINT,  -- Number of the community, unique over all levels; kept over re-indexing.
    level BIGINT,  -- Level of the hierarchy; 0 is the coarsest.
    parent BIGINT,  -- Number of the parent community; -1 at level 0.
    children BIGINT[],  -- Numbers of the communities it is split into.
    title VARCHAR,  -- Name of the community.
    entity_ids VARCHAR[],  -- Its members, sorted.
    relationship_ids VARCHAR[],  -- Relationships with both ends inside, sorted.
    text_unit_ids VARCHAR[],  -- Text units of its members, sorted.
    period VARCHAR,  -- Date of the newest document it draws on, ISO 8601.
    size BIGINT  -- Number of members.
);
-- One row per community of two or more: what its part of the corpus is about, with findings and citations.
CREATE TABLE community_reports (  -- both; key: id; order: community
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- Small number for prompts and citations; never reused.
    community BIGINT,  -- Number of the community.
    level BIGINT,  -- Level of the community.
    parent BIGINT,  -- Number of the parent community; -1 at level 0.
    children BIGINT[],  -- Numbers of the communities it is split into.
    title VARCHAR,  -- Title of the report.
    summary VARCHAR,  -- The report in short.
    full_content VARCHAR,  -- The whole report as Markdown.
    content_tokens BIGINT,  -- (publication) Tokens (o200k_base) of full_content, counted for searches that pack reports.
    summary_tokens BIGINT,  -- (publication) Tokens (o200k_base) of the summary.
    line_tokens BIGINT,  -- (publication) Tokens (o200k_base) of the row as a context shows it, counted for searches.
    short_line_tokens BIGINT,  -- (publication) The same with the summary in place of the content.
    rank DOUBLE,  -- Importance, 0 to 10.
    rating_explanation VARCHAR,  -- Why it has this rank.
    findings STRUCT(summary VARCHAR, explanation VARCHAR)[],  -- The findings.
    full_content_json VARCHAR,  -- The report as JSON.
    period VARCHAR,  -- Date of the newest document it draws on.
    size BIGINT,  -- Number of members of the community.
    fingerprint VARCHAR,  -- Hash of everything the row was computed from.
    context_tokens BIGINT,  -- Tokens of the context the report was written from.
    model VARCHAR  -- What wrote it.
);
-- One row per claim: a dated or quantified statement about an entity, with its source text.
CREATE TABLE covariates (  -- both; key: id; order: subject_number, human_readable_id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    human_readable_id BIGINT,  -- (publication) Small number for prompts and citations; never reused.
    batch VARCHAR,  -- The batch (partition) the row stems from.
    document_id VARCHAR,  -- The document the row stems from.
    text_unit_id VARCHAR,  -- The text unit the row was extracted from.
    covariate_type VARCHAR,  -- Always 'claim'.
    type VARCHAR,  -- Kind of claim.
    description VARCHAR,  -- The claim in words.
    subject_id VARCHAR,  -- Name of the subject, as in GraphRAG.
    object_id VARCHAR,  -- Name of the object; null if it has none (NONE in the working tables).
    subject_key VARCHAR,  -- Normalized subject name; joins entities.title_key after aliases.
    object_key VARCHAR,  -- Normalized object name.
    subject_number BIGINT,  -- (publication) human_readable_id of the subject entity; null when it is no entity.
    object_number BIGINT,  -- (publication) human_readable_id of the object entity; null when it is no entity.
    text_unit_number BIGINT,  -- (publication) human_readable_id of the text unit.
    line_tokens BIGINT,  -- (publication) Tokens (o200k_base) of the row as a context shows it, counted for searches.
    starts_on DATE,  -- (publication) The first day of start_date; null when it is no date.
    ends_on DATE,  -- (publication) The last day of end_date; null when it is no date.
    stated_on DATE,  -- (publication) The date of the newest document that states it, else the date in the text.
    valid_from DATE,  -- (publication) Since when it holds: the date in the text, else of the first document that states it.
    valid_until DATE,  -- (publication) The first day on which it no longer holds, by the text or a later statement.
    superseded_by VARCHAR,  -- (publication) Id of the row that holds from then on; see search.facts.
    status VARCHAR,  -- TRUE, FALSE or SUSPECTED.
    start_date VARCHAR,  -- ISO 8601, as precise as known: 1866, 1866-07 or 1866-07-27.
    end_date VARCHAR,  -- ISO 8601, as precise as known.
    source_text VARCHAR,  -- The quoted passage, literally in the text unit.
    replaces VARCHAR,  -- What no longer holds because of it, in the words of the text; null or empty: nothing.
    extractor VARCHAR  -- What extracted it: method or model, prompt and options. Null: not done yet.
);
-- One row per entity and level: each entity is in exactly one community per level. A community that is not split further stays its members' community at all deeper levels.
CREATE TABLE community_members (  -- both; key: level, entity_id; order: level, community, entity_number
    community BIGINT,  -- Number of the community.
    level BIGINT,  -- Level of the hierarchy.
    entity_id VARCHAR,  -- The member.
    entity_number BIGINT  -- (publication) human_readable_id of the member.
);
-- One row per entity and text unit that names it, as extracted. Facts: entities are derived from these.
CREATE TABLE entity_mentions (  -- both; key: id; order: entity_number, text_unit_number, id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    batch VARCHAR,  -- The batch (partition) the row stems from.
    document_id VARCHAR,  -- The document the row stems from.
    text_unit_id VARCHAR,  -- The text unit the row was extracted from.
    entity_number BIGINT,  -- (publication) human_readable_id of the entity it became part of; null when it was left out.
    text_unit_number BIGINT,  -- (publication) human_readable_id of the text unit.
    title VARCHAR,  -- The name as the text has it.
    title_key VARCHAR,  -- The normalized name under which mentions are grouped.
    type VARCHAR,  -- Entity type given by this extraction.
    description VARCHAR,  -- What this text unit says of the entity.
    n_sentences BIGINT,  -- In how many sentences of the unit it is named.
    extractor VARCHAR  -- What extracted it: method or model, prompt and options. Null: not done yet.
);
-- One row per relation of two entities and text unit that states it, as extracted.
CREATE TABLE relationship_mentions (  -- both; key: id; order: relationship_number, text_unit_number, id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    batch VARCHAR,  -- The batch (partition) the row stems from.
    document_id VARCHAR,  -- The document the row stems from.
    text_unit_id VARCHAR,  -- The text unit the row was extracted from.
    relationship_number BIGINT,  -- (publication) human_readable_id of the relationship; null when it was left out.
    source_number BIGINT,  -- (publication) human_readable_id of the source entity; null when it was left out.
    target_number BIGINT,  -- (publication) human_readable_id of the target entity; null when it was left out.
    text_unit_number BIGINT,  -- (publication) human_readable_id of the text unit.
    source VARCHAR,  -- Name of the entity the relation starts from.
    target VARCHAR,  -- Name of the other entity.
    source_key VARCHAR,  -- Normalized source name.
    target_key VARCHAR,  -- Normalized target name.
    type VARCHAR,  -- Short upper-case predicate, such as COMMANDED; empty when none is known.
    description VARCHAR,  -- What the text unit says of the relation.
    strength DOUBLE,  -- 1 to 10 from a language model; number of sentences from the embedded default.
    replaces VARCHAR,  -- What no longer holds because of it, in the words of the text; null or empty: nothing.
    extractor VARCHAR  -- What extracted it: method or model, prompt and options. Null: not done yet.
);
-- Decisions of entity resolution: one name stands for another, everywhere or in one document.
CREATE TABLE entity_aliases (  -- both; key: document_id, alias_key; order: ALL
    document_id VARCHAR,  -- The document the alias holds in; null: everywhere.
    alias_key VARCHAR,  -- The normalized name that is replaced.
    title_key VARCHAR,  -- The normalized name it stands for.
    rule VARCHAR  -- The rule that decided.
);
-- One row per pair of names that may be one thing, or on which somebody has decided.
CREATE TABLE entity_candidates (  -- both; key: name_key, other_key; order: ALL
    name_key VARCHAR,  -- The normalized name that would stand for the other: the less frequent one.
    other_key VARCHAR,  -- The other normalized name.
    score DOUBLE,  -- 0 to 1, the more evidence the higher; null: there is none, but a decision.
    evidence VARCHAR,  -- spelling, letters (one differs), word (one differs), abbreviation, short form, vectors, neighbors.
    documents BIGINT,  -- Number of documents that name both.
    neighbors BIGINT,  -- Number of entities that both are related to.
    decision VARCHAR,  -- accept: one thing; reject: two things; unsure; empty: nobody has decided.
    decided_by VARCHAR  -- person, or the model that decided; empty: nobody.
);
-- One row per reference [Data: …] in a community report, resolved.
CREATE TABLE citations (  -- both; key: report_id, table_name, human_readable_id; order: ALL
    report_id VARCHAR,  -- The report that cites.
    table_name VARCHAR,  -- entities, relationships, covariates, community_reports or text_units; else as written.
    human_readable_id BIGINT,  -- The number cited; null when it cannot be read.
    cited_id VARCHAR  -- Id of the cited row; null when the report was not written from such a row.
);
-- One row per thing that could not be indexed, with a hint. Rows of solved problems are deleted.
CREATE TABLE index_errors (  -- both; key: batch, source, row_number, stage, error; order: ALL
    batch VARCHAR,  -- The batch (partition) the row stems from.
    source VARCHAR,  -- File or text unit it concerns.
    row_number BIGINT,  -- Row or line in the file; null when it concerns all of it.
    stage VARCHAR,  -- load, date, extract, glean, dropped_records, …
    error VARCHAR,  -- What is wrong.
    hint VARCHAR,  -- What to do about it.
    first_seen TIMESTAMP  -- When it was first seen, UTC.
);
-- One row per text unit, entity with a relationship, and community report.
CREATE TABLE embeddings (  -- both; key: kind, id; order: kind, number
    kind VARCHAR,  -- text_unit, entity or community_report.
    number BIGINT,  -- (publication) human_readable_id of the embedded row.
    id VARCHAR,  -- Id of the embedded row.
    fingerprint VARCHAR,  -- (index) Hash of everything the row was computed from.
    model VARCHAR,  -- The embedding model.
    vector FLOAT[],  -- (index) The unit vector.
    vector FLOAT[{dimensions}]  -- (publication) The unit vector.
);
-- The ledger's entries: every model call that was paid for. A row of embeddings is one text.
CREATE TABLE llm_calls (  -- publication; key: key; order: created_at, key
    key VARCHAR,  -- Hash of all that determines the answer.
    kind VARCHAR,  -- chat or embedding; invalid: paid for, not usable; replaced, purged: paid for, the answer is gone.
    task VARCHAR,  -- What was asked: extract_graph, community_report, …
    provider VARCHAR,  -- Provider, as litellm names it.
    model VARCHAR,  -- Model at the provider.
    parameters VARCHAR,  -- Parameters of the call, JSON.
    prompt_tokens BIGINT,  -- Tokens sent.
    cached_tokens BIGINT,  -- Of them, those that the provider had in its prompt cache.
    completion_tokens BIGINT,  -- Tokens answered.
    cost_usd DOUBLE,  -- US dollars.
    seconds DOUBLE,  -- Seconds until the answer, waiting for limits not counted.
    batch VARCHAR,  -- Batch it was asked for; null for what belongs to none.
    text_unit_id VARCHAR,  -- The text unit it was asked for.
    run_id VARCHAR,  -- Dagster run; null for questions.
    created_at TIMESTAMP  -- When, UTC.
);
-- One row per publication that was made; in a publication the row of this file alone.
CREATE TABLE publication (  -- both; key: number; order: number
    number BIGINT,  -- Number of the publication, from 1.
    published_at TIMESTAMP,  -- When, UTC.
    content_digest VARCHAR,  -- Identifies the content: equal digests mean equal content.
    version VARCHAR,  -- Version of graphrag_assets that published it.
    schema_version VARCHAR  -- Hash of the tables; versions of graphrag_assets with others cannot use them.
);
-- One row per indexed batch: what of it is in the database.
CREATE TABLE operations.batch_state (  -- both; key: batch; order: ALL
    batch VARCHAR,  -- The batch (partition) the row stems from.
    revision BIGINT,  -- Counts the commits of the batch, from 1.
    digest VARCHAR,  -- Hash of the batch's files and of the settings it was indexed with.
    n_documents BIGINT,  -- Documents in it.
    n_text_units BIGINT,  -- Text units in it.
    n_errors BIGINT,  -- Rows of index_errors it has.
    run_id VARCHAR,  -- Dagster run that committed it.
    committed_at TIMESTAMP,  -- When, UTC.
    origin VARCHAR  -- Where an imported batch came from; null: the input folder.
);
-- One row per stage that ran: how long it took and what it changed.
CREATE TABLE operations.index_runs (  -- both; key: run_id, stage, batch; order: ALL
    run_id VARCHAR,  -- Dagster run.
    stage VARCHAR,  -- Asset or group of assets.
    batch VARCHAR,  -- Batch; null for a global stage, and for a batch that was purged.
    committed_at TIMESTAMP,  -- When, UTC.
    seconds DOUBLE,  -- Wall-clock seconds.
    rows BIGINT,  -- Rows in the stage's main table.
    inserted BIGINT,  -- Rows added or changed, over all tables of the stage.
    deleted BIGINT,  -- Rows removed or changed, over all tables of the stage.
    peak_mb BIGINT,  -- Most memory that the process has had during the stage, MB; null where the system does not measure it.
    usage STRUCT(task VARCHAR, calls BIGINT, ledger_hits BIGINT, prompt_tokens BIGINT, cached_tokens BIGINT,
        completion_tokens BIGINT, cost_usd DOUBLE, retries BIGINT, failures BIGINT, dropped_records BIGINT,
        guessed_repairs BIGINT, invented_claims BIGINT, failed_gleanings BIGINT, seconds_waiting DOUBLE)[]  -- By task: model calls paid for, answers found in the ledger, tokens and US dollars of the calls paid for, requests sent again, calls without a usable answer, records left out of answers because of their form, answers in broken JSON whose repair may have lost something, claims left out because the text does not have the passage that they quote, gleanings that the next run tries again, and the seconds that calls waited for limits and retries.
);
-- The settings the index was built with.
CREATE TABLE operations.index_settings (  -- both; key: name; order: ALL
    name VARCHAR,  -- Setting, as in GRAPHRAG_<NAME>.
    value VARCHAR  -- Its value; null: no limit.
);
-- One row per version of the prompt profile: what prompts say about the documents.
CREATE TABLE operations.prompt_profile (  -- both; key: version; order: ALL
    version BIGINT,  -- Number of the version, from 1.
    id VARCHAR,  -- Hash of the profile when it was made; part of the fingerprints of what it concerns.
    adopted BOOLEAN,  -- Whether it is in force, where no setting names another version.
    domain VARCHAR,  -- What the documents are about.
    language VARCHAR,  -- Language to write in, ISO 639-1; empty: that of the documents.
    persona VARCHAR,  -- Who the model is to be.
    rating_scale VARCHAR,  -- What makes a community important, for the ratings of reports.
    entity_types STRUCT("type" VARCHAR, n BIGINT, definition VARCHAR, examples VARCHAR[])[],  -- Entity types with their mentions in the sample, meaning, and names.
    relationship_types STRUCT("type" VARCHAR, n BIGINT, definition VARCHAR, examples VARCHAR[])[],  -- Relationship types that are preferred, with their mentions in the sample.
    examples STRUCT(text_unit_id VARCHAR, "text" VARCHAR, entities STRUCT(title VARCHAR, "type" VARCHAR, description VARCHAR)[],
        relationships STRUCT(source VARCHAR, target VARCHAR, description VARCHAR, strength DOUBLE, "type" VARCHAR)[])[],  -- Passages with the records that were found in them.
    model VARCHAR,  -- The chat model that made it.
    sample_ids VARCHAR[],  -- The text units it was made from, in the order of their selection.
    calls BIGINT,  -- Model calls paid for when it was made.
    cost_usd DOUBLE,  -- US dollars of these calls.
    made_at TIMESTAMP  -- When, UTC.
);

-- What is only in the index.

-- One row per entity or relationship whose description is a summary of several.
CREATE TABLE summarized (  -- index; key: id
    id VARCHAR,  -- Deterministic hash of what makes the row itself; the same in every run.
    fingerprint VARCHAR  -- Hash of everything the row was computed from.
);
-- The graph at the last clustering, which the next one compares with to find changes.
CREATE TABLE clustered_edges (  -- index; key: source_id, target_id
    source_id VARCHAR,  -- The smaller of both entity ids.
    target_id VARCHAR,  -- The other entity id.
    weight DOUBLE  -- Weight of the pair when it last counted as changed: by more than a tenth.
);
-- The register of human_readable_ids: an id keeps its number forever, and no number is reused.
CREATE TABLE numbers (  -- index; key: table_name, id
    table_name VARCHAR,  -- The table.
    id VARCHAR,  -- The row's id.
    human_readable_id BIGINT,  -- The row's number.
    content VARCHAR  -- Hash of the row's content, by which a moved row keeps its number; null where the id does.
);
-- One row: what tells whether a stage is behind the batches, and the version of the tables.
CREATE TABLE index_state (  -- index; key: revision
    revision BIGINT,  -- Incremented by each commit that changes a batch.
    schema_version VARCHAR  -- Hash of the tables; versions of graphrag_assets with others cannot use them.
);
-- Which revision of the index each stage, and the newest publication, were made from.
CREATE TABLE refresh_state (  -- index; key: stage
    stage VARCHAR,  -- A stage, or published: the newest publication.
    inputs VARCHAR  -- The revision in index_state.
);
-- The tokens of the rows of contexts. A publication counts what is not here, and deletes what it does not need.
CREATE TABLE token_counts (  -- index; key: text
    text UBIGINT,  -- Hash of the text and of what it is counted with.
    tokens BIGINT  -- Its tokens.
);
-- The texts in the inverted index. A publication reads what is not here, and deletes what it does not need.
CREATE TABLE indexed_texts (  -- index; key: text
    text UBIGINT,  -- Hash of the text and of what it is counted with.
    n_words BIGINT  -- Its number of words.
);
-- Which text contains which word, how often.
CREATE TABLE postings (  -- index; key: text, word
    text UBIGINT,  -- Hash of the text and of what it is counted with.
    word UBIGINT,  -- Hash of the word and its language, as in words.
    n BIGINT  -- Occurrences of the word.
);
-- The words of the inverted index.
CREATE TABLE words (  -- index; key: word
    word UBIGINT,  -- Hash of the word and its language.
    term VARCHAR,  -- Its stem, without diacritics.
    forms VARCHAR[]  -- Every spelling that a question may have of it; none in scripts without spaces.
);
