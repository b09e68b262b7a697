"""How well entities and reports are found, by what of their text is embedded.

    python -m benchmarks.embedded_texts             # the sample corpus, and what there is of ../shared/data
    python -m benchmarks.embedded_texts --data path/to/data

What is to be found is never part of the text that is embedded:

    mentions        the description of an entity in its last text unit has to find the entity, described by the others;
                    `nameless`: without the words of its name. Entities, mentions: those of the embedded default
    relationships   of an imported index that GraphRAG made with a model; their descriptions have to find both ends,
                    and the report on the smallest community of one end
    claims          of the same index; the same with their subjects

Columns: tokens embedded, and recall@10, the mean share of the wanted rows among the first ten: by vectors alone, and,
for the imported index, by vectors and words as searches rank. Vectors are those of `onnx:bge-small`. `tokens` does not
count a text again that another row has too, as it is not embedded again.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_quality import PROJECT, index
from graphrag_assets.embedded.semantic import encoder_of
from graphrag_assets.pipeline.embedding_texts import ENTITY_TOKENS, entity_texts
from graphrag_assets.query.retrieval import CANDIDATES, Question, text_scores, word_scores
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from graphrag_assets.text.words import count_tokens

Queries = list[tuple[str, set[Any]]]
"""Texts, each with the keys of the rows that it has to find."""
Entities = dict[Any, tuple[str, str]]
"""Title and description by key."""
_FOUND = 10
ENTITIES: dict[str, Callable[[str, str], Sequence[str]]] = {
    "whole description": lambda title, text: [f"{title}:{text}"],
    "as indexed": entity_texts,
    f"{ENTITY_TOKENS} tokens": lambda title, text: entity_texts(title, text)[1:],
    "title": lambda title, _: [title],
}
_MENTIONS = """
SELECT m.title_key, e.title, m.description, m.text_unit_number FROM entity_mentions m
JOIN entities e ON e.human_readable_id = m.entity_number WHERE e.degree > 0 ORDER BY ALL
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=PROJECT.parent / "shared" / "data", help="folder of the data sets")
    data, console = parser.parse_args().data, Console(width=110)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {"sample corpus": PROJECT / "data" / "input"}
        folders |= {path.parent.name: path for path in sorted(data.glob("*/input"))}
        for name, folder in folders.items():
            rows = index(Path(scratch) / name, {}, folder).sql(_MENTIONS).rows()
            console.print(_entity_table(name, *held_out(rows)))
        for made in sorted(data.glob("*/graphrag-v3")):
            reader, name = imported(made, Path(scratch) / "imported" / made.parent.name), made.parent.name
            if queries := queries_of(reader):
                console.print(_entity_table(f"{name} by GraphRAG", entities_of(reader), queries, reader))
                console.print(_report_table(f"{name} by GraphRAG, reports", reader))


def held_out(rows: Sequence[tuple[str, str, str, int]]) -> tuple[Entities, dict[str, Queries]]:
    """The entities without their last text unit where they have several, and queries from that one.

    `rows`: key, title, description, text unit. Distinct descriptions are joined as they are with a chat model.
    """
    units: dict[str, list[int]] = defaultdict(list)
    for key, _, _, unit in rows:
        units[key].append(unit)
    last = {key: max(of) for key, of in units.items() if len(set(of)) > 1}
    kept: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, title, text, unit in rows:
        if unit != last.get(key):
            kept[key].append((title, text))
    entities = {key: (of[0][0], " ".join(sorted({text for _, text in of if text}))) for key, of in kept.items()}
    out = [row for row in rows if row[3] == last.get(row[0]) and row[2] and row[2] not in entities[row[0]][1]]
    return entities, {
        "mentions": [(text, {key}) for key, _, text, _ in out],
        "nameless": [(_without(text, title), {key}) for key, title, text, _ in out],
    }


def _without(text: str, title: str) -> str:
    return re.sub("|".join(map(re.escape, title.split())), "", text, flags=re.IGNORECASE)


def imported(source: Path, folder: Path) -> Reader:
    """The publication of an imported index."""
    command = [sys.executable, "-m", "graphrag_assets", "import", str(source)]
    settings = {"GRAPHRAG_DATA": str(folder), "GRAPHRAG_EMBEDDING_MODEL": "onnx:bge-small"}
    subprocess.run(command, env=os.environ | settings, check=True, stdout=subprocess.DEVNULL)
    return CurrentPublication(folder / "index").reader()


def entities_of(reader: Reader) -> Entities:
    """The entities that have a relationship, by number."""
    query = "SELECT human_readable_id, title, coalesce(description, '') FROM entities WHERE degree > 0 ORDER BY 1"
    return {number: (title, text) for number, title, text in reader.query(query).iter_rows()}


def queries_of(reader: Reader) -> dict[str, Queries]:
    """The descriptions of relationships and of claims, with the entities that they are about; {} without claims."""
    relationships = reader.query("SELECT description, source_number, target_number FROM relationships").rows()
    claims = reader.query("SELECT description, subject_number FROM covariates WHERE subject_number >= 0").rows()
    found = {"relationships": [(text, set(ends)) for text, *ends in relationships if text]}
    return found | {"claims": [(text, {subject}) for text, subject in claims]} if claims else {}


def _entity_table(title: str, entities: Entities, queries: dict[str, Queries], reader: Reader | None = None) -> Table:
    table = Table(title=f"{title}: {len(entities)} entities", title_justify="left")
    for heading in ("embedded", "tokens", *(f"{name} ({len(asked)})" for name, asked in queries.items())):
        table.add_column(heading, justify="left" if heading == "embedded" else "right")
    for name, texts_of in ENTITIES.items():
        texts = [texts_of(*entity) for entity in entities.values()]
        vectors, tokens = _vectors(texts), sum(count_tokens({text for of in texts for text in of}))
        cells = (recall(asked, vectors, list(entities), reader, "entity") for asked in queries.values())
        table.add_row(name, f"{tokens:,}", *cells)
    return table


def _report_table(title: str, reader: Reader) -> Table:
    """How well the report on the smallest community of an entity is found, for pairs and for larger communities."""
    columns = "human_readable_id, title, summary, full_content, size"
    reports = {n: of for n, *of in reader.query(f"SELECT {columns} FROM community_reports WHERE size > 1").rows()}
    indexed = dict(reader.query("SELECT number, vector FROM embeddings WHERE kind = 'community_report'").iter_rows())
    vectors = {
        "full content": _vectors([full] for _, _, full, _ in reports.values()),
        "as indexed": np.array([indexed[number] for number in reports]),
        "title and summary": _vectors([f"{title}\n\n{summary}"] for title, summary, *_ in reports.values()),
    }
    members = "SELECT DISTINCT entity, community FROM search.entity_communities"
    communities = sorted(reader.query(members).rows(), key=lambda row: reports[row[1]][-1] if row[1] in reports else 0)
    of_entity = {entity: community for entity, community in reversed(communities) if community in reports}
    table = Table(title=f"{title}: {len(reports)}", title_justify="left")
    for heading in ("query, about", *vectors):
        table.add_column(heading)
    for name, rows in queries_of(reader).items():
        asked = [(text, of_entity[min(ends)]) for text, ends in rows if min(ends) in of_entity]
        for kind in ("pairs", "others"):
            chosen: Queries = [(text, {n}) for text, n in asked if (reports[n][-1] == 2) == (kind == "pairs")]
            if chosen:
                cells = (recall(chosen, each, list(reports), reader, "community_report") for each in vectors.values())
                table.add_row(f"{name}, {kind} ({len(chosen)})", *cells)
    return table


def _vectors(texts: Iterable[Sequence[str]]) -> np.ndarray:
    """For each list of texts the mean of their vectors."""
    listed = list(texts)
    known = list(dict.fromkeys(text for of in listed for text in of))
    vectors = dict(zip(known, np.asarray(encoder_of("onnx:bge-small").embed_passages(known)), strict=True))
    sums = np.stack([np.sum([vectors[text] for text in of], axis=0) for of in listed])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))


def recall(queries: Queries, vectors: np.ndarray, keys: Sequence[Any], reader: Reader | None, kind: str) -> str:
    """The mean share of the wanted keys among the first ten: by vectors, and with words where there is an index."""
    by_vectors, by_both = [], []
    for vector, (text, wanted) in zip(_vectors([text] for text, _ in queries), queries, strict=True):
        similarity = np.round(vectors @ vector, 6)
        nearest = {keys[n]: float(similarity[n]) for n in np.argsort(-similarity, kind="stable")[:CANDIDATES]}
        by_vectors.append(len(wanted & set(list(nearest)[:_FOUND])) / len(wanted))
        if reader:
            found = text_scores(word_scores(reader, kind, Question(text), CANDIDATES), nearest, 1.0)
            by_both.append(len(wanted & set(list(found)[:_FOUND])) / len(wanted))
    return ", ".join(f"{100 * np.mean(shares):.1f}" for shares in (by_vectors, by_both) if shares)


if __name__ == "__main__":
    main()
