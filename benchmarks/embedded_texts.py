"""How well entities and reports are found by their vectors, by what of their text is embedded.

    python -m benchmarks.embedded_texts             # sample corpus, and what there is of ../shared/data
    python -m benchmarks.embedded_texts --data path/to/data

The vectors are those of `onnx:minilm`, compared exactly. Queries are not part of the texts that they have to find:

    mentions        the description of an entity in one text unit; it has to find the entity, described by all others.
                    `nameless`: its names are left out of the query
    questions       of HotpotQA; they have to find the entities whose titles are those of their passages
    relationships   of an index that GraphRAG made with a model; their descriptions have to find both ends
    claims          of the same index; their descriptions have to find their subjects, and the report on the smallest
                    community of the subject

Columns: recall@10, the mean share of the rows wanted among the first ten; tokens of all texts embedded. `index` joins
the distinct descriptions of an entity as it does with a chat model.
"""

import argparse
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_quality import PROJECT, collections, index
from graphrag_assets.embedded.semantic.encoder import encoder_of
from graphrag_assets.text import count_tokens, cut_text, sentences, title_key

Recipe = Callable[[str, str], str]
Queries = list[tuple[str, set[str]]]
"""Texts, each with the keys of the rows that it has to find."""

_FOUND = 10


def _first_sentence(text: str) -> str:
    return text[: sentences(text)[0].end].rstrip() if text else ""


ENTITIES: dict[str, Recipe] = {
    "all": lambda title, text: f"{title}:{text}",
    "64 tokens": lambda title, text: f"{title}:{cut_text(text, 64)}",
    "48 tokens": lambda title, text: f"{title}:{cut_text(text, 48)}",
    "32 tokens": lambda title, text: f"{title}:{cut_text(text, 32)}",
    "24 tokens": lambda title, text: f"{title}:{cut_text(text, 24)}",
    "first sentence": lambda title, text: f"{title}:{_first_sentence(text)}",
    "title": lambda title, text: title,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=PROJECT.parent / "shared" / "data", help="folder of the data sets")
    data, console = parser.parse_args().data, Console(width=110)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {"sample corpus": PROJECT / "data" / "input"}
        folders |= {path.parent.name: path for path in sorted(data.glob("*/input"))}
        for name, folder in folders.items():
            rag = index(Path(scratch) / name, {}, folder)
            console.print(_entities(f"{name}: mentions", *held_out(rag.sql(_MENTIONS).rows())))
        for each in collections(data / "hotpotqa-100"):
            if each.name == "titled":
                rag = index(Path(scratch) / each.name, each.files)
                rows = rag.sql(_MENTIONS).rows()
                console.print(_entities("hotpotqa-100: mentions", *held_out(rows)))
                asked = json.loads((data / "hotpotqa-100" / "questions.json").read_text())
                gold = [(q["question"], {title_key(title) for title, _ in q["supporting_facts"]}) for q in asked]
                console.print(_entities("hotpotqa-100: questions", _joined(rows), {"questions": gold}))
    for made in sorted(data.glob("*/graphrag-v3")):
        texts, queries = made_by_a_model(made)
        console.print(_entities(f"{made.parent.name}, made by a model", texts, queries))
        console.print(_reports(f"{made.parent.name}, made by a model: reports", made))


_MENTIONS = """
SELECT m.title_key, e.title, m.description, m.text_unit_number FROM entity_mentions m
JOIN entities e ON e.human_readable_id = m.entity_number WHERE e.degree > 0 ORDER BY ALL
"""


def _joined(rows: Iterable[tuple[str, str, str, int]]) -> dict[str, tuple[str, str]]:
    """Title and distinct descriptions in alphabetical order, by key."""
    found: dict[str, tuple[str, set[str]]] = {}
    for key, title, description, _ in rows:
        found.setdefault(key, (title, set()))[1].add(description)
    return {key: (title, " ".join(sorted(filter(None, texts)))) for key, (title, texts) in found.items()}


def held_out(rows: list[tuple[str, str, str, int]]) -> tuple[dict[str, tuple[str, str]], dict[str, Queries]]:
    """The texts of all entities, without their last text unit where they have several, and queries from that one."""
    units: dict[str, list[int]] = defaultdict(list)
    for key, _, _, unit in rows:
        units[key].append(unit)
    last = {key: max(of) for key, of in units.items() if len(set(of)) > 1}
    kept = [row for row in rows if row[3] != last.get(row[0])]
    given = {(key, description) for key, _, description, _ in kept}
    out = [row for row in rows if row[3] == last.get(row[0]) and (row[0], row[2]) not in given and row[2]]
    named = [(description, {key}) for key, _, description, _ in out]
    nameless = [(_without(description, title), {key}) for key, title, description, _ in out]
    return _joined(kept), {"mentions": named, "nameless": nameless}


def _without(text: str, title: str) -> str:
    return re.sub("|".join(map(re.escape, title.split())), "", text, flags=re.IGNORECASE)


def made_by_a_model(folder: Path) -> tuple[dict[str, tuple[str, str]], dict[str, Queries]]:
    """The entities of an index of GraphRAG that have a relationship, and its relationships and claims as queries."""
    entities = _rows(folder / "entities.parquet", "title, title, description", "degree > 0")
    texts = {key: (title, description or "") for key, title, description in entities}
    ties = _rows(folder / "relationships.parquet", "description, source, target")
    queries = {"relationships": [(text, {source, target} & texts.keys()) for text, source, target in ties if text]}
    if (claims := folder / "covariates.parquet").exists():
        found = _rows(claims, "description, subject_id")
        queries["claims"] = [(text, {subject} & texts.keys()) for text, subject in found if text]
    return texts, queries


def _reports(title: str, folder: Path) -> Table:
    """Reports on communities of more than two, and on pairs, by what stands for them."""
    path = folder / "community_reports.parquet"
    reports = _rows(path, "community, title, summary, full_content, size")
    members: dict[int, set[str]] = {
        number: set(ids) for number, ids in _rows(folder / "communities.parquet", "community, entity_ids")
    }
    called = dict(_rows(folder / "entities.parquet", "id, title"))
    smallest: dict[str, tuple[int, int]] = {}
    for number, _, _, _, size in reports:
        for member in members.get(number, ()):
            smallest[called.get(member, "")] = min(smallest.get(called.get(member, ""), (size, number)), (size, number))
    about = "description, subject_id"
    claims = folder / "covariates.parquet"
    found = _rows(claims, about) if claims.exists() else []
    ties = _rows(folder / "relationships.parquet", "description, source")
    asked = {
        "claims": [(text, smallest[who]) for text, who in found if text and who in smallest],
        "relationships": [(text, smallest[who]) for text, who in ties if text and who in smallest],
    }
    entity = {key: f"{name}:{cut_text(text or '', 32)}" for key, name, text in _rows(folder / "entities.parquet", "id, title, description")}
    vector_of = dict(zip(entity, _vectors(entity.values()), strict=True))
    summaries = _vectors(f"{name}\n\n{summary}" for _, name, summary, _, _ in reports)
    full = _vectors(text for _, _, _, text, _ in reports)
    large = np.array([size > 2 for *_, size in reports])
    derived = summaries.copy()
    none = summaries.copy()
    for place, (number, *_, size) in enumerate(reports):
        if size <= 2:
            mean = np.sum([vector_of[m] for m in members[number] if m in vector_of], axis=0)
            derived[place] = mean / np.linalg.norm(mean)
            none[place] = 0
    table = Table(title=title, title_justify="left")
    for heading in ("queries", "about", "n", "full content", "title, summary", "mean of a pair", "none for a pair"):
        table.add_column(heading)
    numbers = [number for number, *_ in reports]
    for name, queries in asked.items():
        for group in ("pairs", "others"):
            chosen = [(text, {number}) for text, (size, number) in queries if (size <= 2) == (group == "pairs")]
            if chosen:
                vectors = _vectors(text for text, _ in chosen)
                cells = [f"{100 * recall(vectors, chosen, each, numbers):.1f}" for each in (full, summaries, derived, none)]
                table.add_row(name, group, str(len(chosen)), *cells)
    return table


def _rows(path: Path, columns: str, where: str = "true") -> list[tuple]:
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('{path}') WHERE {where}").fetchall()


def _entities(title: str, texts: dict[str, tuple[str, str]], queries: dict[str, Queries]) -> Table:
    table = Table(title=f"{title}, {len(texts)} entities", title_justify="left")
    usable = {name: [(text, wanted & texts.keys()) for text, wanted in asked if wanted & texts.keys()] for name, asked in queries.items()}
    for heading in ("embedded", "tokens", *(f"{name} ({len(asked)})" for name, asked in usable.items())):
        table.add_column(heading, justify="left" if heading == "embedded" else "right")
    asked_vectors = {name: _vectors(text for text, _ in asked) for name, asked in usable.items()}
    for name, recipe in ENTITIES.items():
        embedded = [recipe(*text) for text in texts.values()]
        vectors = _vectors(embedded)
        found = (f"{100 * recall(asked_vectors[kind], asked, vectors, list(texts)):.1f}" for kind, asked in usable.items())
        table.add_row(name, f"{sum(count_tokens(embedded)):,}", *found)
    return table


def _vectors(texts: Iterable[str]) -> np.ndarray:
    return np.asarray(encoder_of("onnx:minilm").embed_passages(list(texts)))


def recall(asked: np.ndarray, queries: list[tuple[str, set]], vectors: np.ndarray, keys: list) -> float:
    """The mean share of the keys wanted among the first ten."""
    shares = []
    for vector, (_, wanted) in zip(asked, queries, strict=True):
        nearest = np.argsort(-(vectors @ vector), kind="stable")[:_FOUND]
        shares.append(len(wanted & {keys[place] for place in nearest}) / len(wanted))
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
