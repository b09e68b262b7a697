"""CPU seconds and peak memory of merge, communities, checks and publication for as many mentions as a huge corpus has.

    python -m benchmarks.synthetic_mentions --tokens 10000000
    GRAPHRAG_MEMORY_LIMIT=8GB python -m benchmarks.synthetic_mentions --tokens 100000000 --folder /big/disk

Mentions are written straight into the working tables, in the proportions of the sample corpus: 100 million tokens are
250,000 text units with 5,000,000 mentions of 1,500,000 names and 4,750,000 of relationships. A fifth of the
mentions are of names that many text units have, the others of names of a few neighboring ones, as in documents on
different subjects. Each stage is a process of its own, so that its peak is its own. The status is 1 if one needs more
than `--most-gb`.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.index_with_model import Cost, cost_of
from graphrag_assets.assets.index import Index

MENTIONS_PER_UNIT = 20
TOKENS_PER_UNIT = 400
UNITS_PER_DOCUMENT = 10
NAMES_PER_MENTION = 0.3
STAGES = ("write", "merge", "communities", "checks", "publication")
_MACROS = (
    "uniform(i, salt) AS hash(i, salt) / 18446744073709551616.0",
    # A common name, or one of those around the place of the mention in the corpus.
    "name_of(i) AS CASE WHEN uniform(i, 1) < 0.2 THEN (getvariable('names') * pow(uniform(i, 2), 4))::BIGINT "
    "ELSE (i * getvariable('share') + 60 * uniform(i, 3))::BIGINT % getvariable('names')::BIGINT END",
    "title_of(name) AS 'Name' || name || ' Of' || (name % 997)",
)
_WRITE = """
CREATE TEMP TABLE named AS
SELECT i AS number, i // $per_unit AS unit, name_of(i) AS name FROM range(getvariable('mentions')) t(i);

INSERT INTO documents BY NAME
SELECT md5('d' || d) AS id, 'b' || (d // 1000) AS batch, 'document-' || d || '.txt' AS source,
       'Document ' || d AS title, '' AS text,
       md5('c' || d) AS content_hash, 'text' AS format, 'en' AS language, $tokens * 10 AS n_tokens,
       '2024-01-01T00:00:00Z' AS creation_date
FROM range(getvariable('units') // $per_document + 1) t(d);

INSERT INTO text_units BY NAME
SELECT md5('u' || unit) AS id, 'b' || (unit // $per_document // 1000) AS batch,
       md5('d' || (unit // $per_document)) AS document_id, unit % $per_document AS ordinal,
       string_agg(title_of(name), ' met ' ORDER BY number) AS text, '' AS context, $tokens AS n_tokens,
       10 AS n_sentences, $extractor AS extractor
FROM named GROUP BY unit;

INSERT INTO entity_mentions BY NAME
SELECT md5('m' || min(number)) AS id, 'b' || (unit // $per_document // 1000) AS batch,
       md5('d' || (unit // $per_document)) AS document_id, md5('u' || unit) AS text_unit_id, title_of(name) AS title,
       lower(title_of(name)) AS title_key, ['NAME', 'GEO', 'CONCEPT', 'ORGANIZATION'][1 + name % 4] AS type,
       title_of(name) || ' is described in this sentence of text unit ' || unit || '.' AS description,
       count(*) AS n_sentences, $extractor AS extractor
FROM named GROUP BY unit, name;

INSERT INTO relationship_mentions BY NAME
WITH pairs AS (SELECT number, unit, name, lead(name) OVER (PARTITION BY unit ORDER BY number) AS other FROM named)
SELECT md5('r' || number) AS id, 'b' || (unit // $per_document // 1000) AS batch,
       md5('d' || (unit // $per_document)) AS document_id, md5('u' || unit) AS text_unit_id, title_of(name) AS source,
       title_of(other) AS target, lower(title_of(name)) AS source_key, lower(title_of(other)) AS target_key, '' AS type,
       title_of(name) || ' met ' || title_of(other) || ' in text unit ' || unit || '.' AS description, 1.0 AS strength,
       $extractor AS extractor
FROM pairs WHERE other <> name;

INSERT INTO batch_state BY NAME
SELECT batch, 1 AS revision, batch AS digest, count(*) AS n_documents, 0 AS n_text_units,
       0 AS n_errors, 'synthetic' AS run_id, '2024-01-01'::TIMESTAMP AS committed_at
FROM documents GROUP BY batch;
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the index is written and left; default: a temporary one")
    parser.add_argument("--most-gb", type=float, default=24.0)
    parser.add_argument(
        "--stage", choices=STAGES, help="run one stage in this process, as the others have left the index"
    )
    options = parser.parse_args()
    if options.stage:
        run_stage(options.stage, options.tokens)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        costs = {stage: measure(stage, options.tokens, folder) for stage in STAGES}
        Console().print(table(options.tokens, folder, costs))
    sys.exit(any(cost.peak_mb > 1000 * options.most_gb for cost in costs.values()))


def measure(stage: str, tokens: int, folder: Path) -> Cost:
    command = [sys.executable, "-m", "benchmarks.synthetic_mentions", "--stage", stage, "--tokens", str(tokens)]
    return cost_of(command, os.environ | {"GRAPHRAG_DATA": str(folder)}, folder / f"{stage}.log")


def run_stage(stage: str, tokens: int) -> None:
    from graphrag_assets.assets.checks import CHECKS, failed_blocking_checks
    from graphrag_assets.assets.communities import update_communities
    from graphrag_assets.assets.knowledge_graph import knowledge_graph
    from graphrag_assets.assets.publish import update_publication

    index = Index.from_environment()
    if stage == "write":
        write(index, tokens)
    elif stage == "merge":
        knowledge_graph(index, index.models(), stage)
    elif stage == "communities":
        update_communities(index, stage)
    elif stage == "checks":
        made = {check.asset for check in CHECKS} - {"community_reports", "citations", "embeddings"}
        if failed := failed_blocking_checks(index, made):
            sys.exit(f"Failed checks: {[check.name for check in failed]}")
    else:
        update_publication(index, stage, checked=True)


def write(index: Index, tokens: int) -> None:
    """Write documents, text units and mentions of a corpus of so many tokens."""
    units = tokens // TOKENS_PER_UNIT
    given = {
        "per_unit": MENTIONS_PER_UNIT,
        "per_document": UNITS_PER_DOCUMENT,
        "tokens": TOKENS_PER_UNIT,
        "extractor": index.models().extractor,
    }
    variables = {
        "units": units,
        "mentions": units * MENTIONS_PER_UNIT,
        "names": int(units * MENTIONS_PER_UNIT * NAMES_PER_MENTION),
        "share": NAMES_PER_MENTION,
    }
    with index.working.transaction() as connection:
        for name, value in variables.items():
            connection.execute(f"SET VARIABLE {name} = $value", {"value": value})
        for macro in _MACROS:
            connection.execute(f"CREATE OR REPLACE TEMP MACRO {macro}")
        for statement in connection.extract_statements(_WRITE):
            connection.execute(statement, {name: given[name] for name in statement.named_parameters})


def table(tokens: int, folder: Path, costs: dict[str, Cost]) -> Table:
    index = Index(folder / "index" / "working.duckdb")
    names = ("text_units", "entity_mentions", "relationship_mentions", "entities", "relationships", "communities")
    counted = index.working.read("SELECT " + ", ".join(f"(SELECT count(*) FROM {name}) AS {name}" for name in names))
    rows = ", ".join(f"{n:,} {name}" for name, n in counted.row(0, named=True).items())
    limit = os.environ.get("GRAPHRAG_MEMORY_LIMIT", "the default")
    shown = Table("stage", "CPU s", "seconds", "peak MB", title=f"{tokens:,} tokens: {rows}; DuckDB's memory: {limit}")
    for stage, cost in costs.items():
        shown.add_row(stage, f"{cost.cpu_seconds:.0f}", f"{cost.seconds:.0f}", f"{cost.peak_mb:,.0f}")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    shown.add_row("disk", "", "", f"{size / 1e6:,.0f}")
    return shown


if __name__ == "__main__":
    main()
