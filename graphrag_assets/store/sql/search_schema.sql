-- The tables of a publication that queries of this package read, as in schema.sql.

-- Each relationship twice, once from either end: the adjacency list of the graph.
CREATE TABLE search.edges (  -- publication; key: entity, neighbor; order: ALL
    entity BIGINT,  -- human_readable_id of one end.
    neighbor BIGINT,  -- human_readable_id of the other end.
    relationship BIGINT,  -- human_readable_id of the relationship.
    weight DOUBLE,  -- The relationship's weight.
    combined_degree BIGINT  -- The relationship's combined degree.
);
-- Which text units name which entity.
CREATE TABLE search.entity_text_units (  -- publication; key: entity, text_unit; order: ALL
    entity BIGINT,  -- human_readable_id of the entity.
    text_unit BIGINT,  -- human_readable_id of the text unit.
    n_relationships BIGINT  -- Relationships of the entity stated in the text unit.
);
-- Which text units state which relationship.
CREATE TABLE search.relationship_text_units (  -- publication; key: relationship, text_unit; order: ALL
    relationship BIGINT,  -- human_readable_id of the relationship.
    text_unit BIGINT  -- human_readable_id of the text unit.
);
-- The community of each entity at each level.
CREATE TABLE search.entity_communities (  -- publication; key: entity, level; order: ALL
    entity BIGINT,  -- human_readable_id of the entity.
    level BIGINT,  -- Level of the hierarchy.
    community BIGINT  -- Number of the community.
);
-- What entities are called: normalized titles, with and without diacritics and hyphens, and aliases.
CREATE TABLE search.entity_names (  -- publication; key: name, entity; order: ALL
    name UBIGINT,  -- md5_number_lower of the normalized name.
    entity BIGINT,  -- human_readable_id of the entity.
    frequency BIGINT,  -- Number of text units that name the entity.
    subject UBIGINT  -- The entity's name in passage_subjects, whichever of its names this is.
);
-- Which text units are about a thing: their title, a heading or an opening definition names it.
CREATE TABLE search.passage_subjects (  -- publication; key: name, text_unit; order: name, text_unit
    name UBIGINT,  -- md5_number_lower of the thing's normalized name; of an entity, its title_key.
    title VARCHAR,  -- The thing's name as the text unit has it.
    text_unit BIGINT,  -- human_readable_id of the text unit.
    weight DOUBLE,  -- 1 / number of text units about the thing.
    rarity DOUBLE  -- 1 / log2(1 + number of text units that name the thing).
);
-- Which text units name a thing that others are about. Searches walk from here to passage_subjects.
CREATE TABLE search.passage_names (  -- publication; key: text_unit, name; order: text_unit, name
    text_unit BIGINT,  -- human_readable_id of the text unit.
    name UBIGINT,  -- As in passage_subjects.
    weight DOUBLE  -- Share of the text unit's rank that passes to the thing: its rarity, at most 1 in all.
);
-- The inverted index for BM25: which text contains which term, how often.
CREATE TABLE search.postings (  -- publication; key: term, number; order: term, number
    kind VARCHAR,  -- text_unit, entity or community_report.
    term UBIGINT,  -- md5_number_lower of the kind, a space and the term: see word_forms.
    number BIGINT,  -- human_readable_id of the row.
    n BIGINT,  -- Occurrences of the term in its text.
    length BIGINT  -- Number of words of its text.
);
-- The terms of the inverted index.
CREATE TABLE search.posting_terms (  -- publication; key: term; order: term
    term UBIGINT,  -- As in postings.
    texts BIGINT  -- Number of texts of the kind that contain it.
);
-- What the inverted index covers.
CREATE TABLE search.posting_statistics (  -- publication; key: kind; order: kind
    kind VARCHAR,  -- text_unit, entity or community_report.
    texts BIGINT,  -- Number of texts.
    mean_length DOUBLE  -- Their mean number of words.
);
-- The languages of the documents.
CREATE TABLE search.languages (  -- publication; key: language; order: documents DESC, language
    language VARCHAR,  -- ISO 639-1 code.
    documents BIGINT,  -- Number of documents in it.
    stop_words VARCHAR[]  -- Words with grammar instead of content: questions are not searched by them.
);
-- The words of the indexed texts, and the terms that stand for them in the inverted index.
CREATE TABLE search.word_forms (  -- publication; key: form, term; order: ALL
    beginning VARCHAR,  -- First three characters of the form; the table is sorted by it.
    form VARCHAR,  -- The word in lower case, without diacritics, or with ae for ä.
    term VARCHAR,  -- Its stem in the language of a text that has it, without diacritics.
    uses BIGINT  -- How many words of how many texts of all kinds have this form and term; never zero.
);
-- The dated statements of which one supersedes another: claims, and mentions of relationships.
CREATE TABLE search.facts (  -- publication; key: id; order: slot, valid_from, id
    id VARCHAR,  -- Id of the claim, or of the row of relationship_mentions.
    kind VARCHAR,  -- claim or relationship.
    number BIGINT,  -- human_readable_id of the claim or relationship.
    text_unit BIGINT,  -- human_readable_id of the text unit.
    slot UBIGINT,  -- Hash of what has one value at a time: subject, family of predicates, object slot.
    value UBIGINT,  -- Hash of the value that it states.
    stated_end DATE,  -- The first day on which it no longer holds, by the text.
    ends VARCHAR[],  -- Ids of the statements that it ends, because its text says so.
    stated_on DATE,  -- The date of the newest document that states it, else the date in the text.
    valid_from DATE,  -- Since when it holds: the date in the text, else of the first document that states it.
    valid_until DATE,  -- The first day on which it no longer holds, by the text or a later statement.
    superseded_by VARCHAR  -- Id of the row that holds from then on; see search.facts.
);
