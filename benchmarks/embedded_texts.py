"""How well entities and reports are found by their vectors, by what of their text is embedded.

    python -m benchmarks.embedded_texts             # the sample corpus, and what there is of ../shared/data
    python -m benchmarks.embedded_texts --data path/to/data

The vectors are those of `onnx:minilm`, compared exactly, without the search by words that queries add. What is to be
found is never part of the text that is searched:

    mentions        the description of an entity in its last text unit has to find the entity, described by the others;
                    `nameless`: without the words of its name. Entities, mentions: those of the embedded default
    relationships   of an index that GraphRAG made with a model; their descriptions have to find both ends, and the
                    report on the smallest community of the source
    claims          of the same index; the same with their subjects

Columns: tokens embedded, and recall@10, the mean share of the wanted rows among the first ten. `tokens` does not count
a text again that another row has too, as it is not embedded again.
"""

import argparse
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_quality import PROJECT, index
from graphrag_assets.embedded.semantic.encoder import encoder_of
from graphrag_assets.pipeline.embedding_texts import ENTITY_TOKENS, beginning, entity_texts
from graphrag_assets.text import count_tokens, title_key

Queries = list[tuple[str, set[Any]]]
"""Texts, each with the keys of the rows that it has to find."""
Entities = dict[str, tuple[str, str, int]]
"""Title, description and number of text units, by key."""
_FOUND = 10
ENTITIES: dict[str, Callable[[str, str, int], list[str]]] = {
    "whole description": lambda title, text, _: [f"{title}:{text}"],
    "as indexed": entity_texts,
    f"{ENTITY_TOKENS} tokens": lambda title, text, _: [beginning(title, text)],
    "title": lambda title, *_: [title],
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
        if (made / "covariates.parquet").exists():
            console.print(_entity_table(f"{made.parent.name} by GraphRAG", *made_by_a_model(made)))
            console.print(_report_table(f"{made.parent.name} by GraphRAG, reports", made))


def held_out(rows: Sequence[tuple[str, str, str, int]]) -> tuple[Entities, dict[str, Queries]]:
    """The entities without their last text unit where they have several, and queries from that one.

    `rows`: key, title, description, text unit. Distinct descriptions are joined as they are with a chat model.
    """
    units: dict[str, list[int]] = defaultdict(list)
    for key, _, _, unit in rows:
        units[key].append(unit)
    last = {key: max(of) for key, of in units.items() if len(set(of)) > 1}
    kept: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for key, title, text, unit in rows:
        if unit != last.get(key):
            kept[key].append((title, text, unit))
    entities = {
        key: (of[0][0], " ".join(sorted({text for _, text, _ in of if text})), len({unit for *_, unit in of}))
        for key, of in kept.items()
    }
    out = [row for row in rows if row[3] == last.get(row[0]) and row[2] and row[2] not in entities[row[0]][1]]
    return entities, {
        "mentions": [(text, {key}) for key, _, text, _ in out],
        "nameless": [(_without(text, title), {key}) for key, title, text, _ in out],
    }


def _without(text: str, title: str) -> str:
    return re.sub("|".join(map(re.escape, title.split())), "", text, flags=re.IGNORECASE)


def made_by_a_model(folder: Path) -> tuple[Entities, dict[str, Queries]]:
    """The entities of an index of GraphRAG that have a relationship; its relationships and claims as queries."""
    columns = "title, title, coalesce(description, ''), len(text_unit_ids)"
    entities = {key: of for key, *of in _rows(folder / "entities.parquet", columns, "degree > 0")}
    queries = {
        name: [(text, {title for title in ends if title in entities}) for text, *ends in rows if text]
        for name, rows in _queries(folder).items()
    }
    return entities, {name: [row for row in asked if row[1]] for name, asked in queries.items()}


def _queries(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {
        "relationships": _rows(folder / "relationships.parquet", "description, source, target"),
        "claims": _rows(folder / "covariates.parquet", "description, subject_id"),
    }


def _rows(path: Path, columns: str, where: str = "true") -> list[tuple[Any, ...]]:
    return duckdb.sql(f"SELECT {columns} FROM read_parquet($path) WHERE {where}", params={"path": str(path)}).fetchall()


def _entity_table(title: str, entities: Entities, queries: dict[str, Queries]) -> Table:
    table = Table(title=f"{title}: {len(entities)} entities", title_justify="left")
    for heading in ("embedded", "tokens", *(f"{name} ({len(asked)})" for name, asked in queries.items())):
        table.add_column(heading, justify="left" if heading == "embedded" else "right")
    asked_vectors = [_vectors([text] for text, _ in asked) for asked in queries.values()]
    for name, texts_of in ENTITIES.items():
        texts = [texts_of(*entity) for entity in entities.values()]
        vectors, tokens = _vectors(texts), sum(count_tokens({text for of in texts for text in of}))
        found = zip(asked_vectors, queries.values(), strict=True)
        cells = (f"{100 * recall(asked, wanted, vectors, list(entities)):.1f}" for asked, wanted in found)
        table.add_row(name, f"{tokens:,}", *cells)
    return table


def _report_table(title: str, folder: Path) -> Table:
    """How well the report on the smallest community of an entity is found, for pairs and for larger communities."""
    columns = "community, title, summary, full_content, size"
    reports = {number: of for number, *of in _rows(folder / "community_reports.parquet", columns)}
    columns = "id, title, coalesce(description, ''), len(text_unit_ids)"
    entities = {key: of for key, *of in _rows(folder / "entities.parquet", columns)}
    members = dict(_rows(folder / "communities.parquet", "community, entity_ids"))
    texts = {
        "full content": [[full] for _, _, full, _ in reports.values()],
        "as indexed": [
            [beginning(*entities[member][:2]) for member in members[number]] if size == 2 else [f"{name}\n\n{summary}"]
            for number, (name, summary, _, size) in reports.items()
        ],
    }
    of_entity: dict[str, int] = {}
    for number in sorted(reports, key=lambda number: reports[number][3]):
        for member in members[number]:
            of_entity.setdefault(title_key(entities[member][0]), number)
    table = Table(title=f"{title}: {len(reports)}", title_justify="left")
    vectors = {name: _vectors(given) for name, given in texts.items()}
    for heading in ("query, about", *(f"{name}, {sum(map(_size, given)):,} tokens" for name, given in texts.items())):
        table.add_column(heading)
    for name, rows in _queries(folder).items():
        asked = [
            (text, of_entity[key]) for text, end, *_ in rows if text and (key := title_key(end or "")) in of_entity
        ]
        for kind, is_pair in (("pairs", True), ("others", False)):
            chosen: Queries = [(text, {n}) for text, n in asked if (reports[n][3] == 2) == is_pair]
            if chosen:
                found = _vectors([text] for text, _ in chosen)
                cells = (f"{100 * recall(found, chosen, each, list(reports)):.1f}" for each in vectors.values())
                table.add_row(f"{name}, {kind} ({len(chosen)})", *cells)
    return table


def _size(texts: list[str]) -> int:
    """Tokens of a report; those of a pair's members are embedded anyway."""
    return sum(count_tokens(texts)) if len(texts) == 1 else 0


def _vectors(texts: Iterable[list[str]]) -> np.ndarray:
    """For each list of texts the mean of their vectors."""
    listed = list(texts)
    known = list(dict.fromkeys(text for of in listed for text in of))
    vectors = dict(zip(known, np.asarray(encoder_of("onnx:minilm").embed_passages(known)), strict=True))
    sums = np.stack([np.sum([vectors[text] for text in of], axis=0) for of in listed])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))


def recall(asked: np.ndarray, queries: Queries, vectors: np.ndarray, keys: Sequence[Any]) -> float:
    """The mean share of the wanted keys among the first ten."""
    shares = []
    for vector, (_, wanted) in zip(asked, queries, strict=True):
        nearest = np.argsort(-(vectors @ vector), kind="stable")[:_FOUND]
        shares.append(len(wanted & {keys[place] for place in nearest}) / len(wanted))
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
