"""CPU time and memory of finding candidates among made-up names.

    python -m benchmarks.entity_candidates --names 1000000 --vectors 384
    python -m benchmarks.entity_candidates --names 1000000 --edit    # in an index: all, and after an edit of five names

Names have one to four words of a vocabulary whose frequencies follow Zipf's law. One in fifty has a misspelled twin,
one in a hundred an abbreviation. Each has six neighbors. `--vectors` gives each a vector of so many numbers.
"""

import random
import resource
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import polars as pl

from graphrag_assets.indexing.candidates import update_candidates
from graphrag_assets.indexing.index import Index
from graphrag_assets.store import schema
from graphrag_assets.store.connections import Limits, execute_with
from graphrag_assets.store.entity_candidates import candidate_pairs
from graphrag_assets.store.working import replace_rows

_SYLLABLES = "ba ce di fo gu la me ni po ru sta tre vin wor ash ell ing ond urt ock".split()  # noqa: SIM905
_TYPES = ("PERSON", "ORGANIZATION", "GEO", "NAME")


def made_up(count: int, chance: random.Random) -> pl.DataFrame:
    """`count` names: n, key, type, frequency."""
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5))) for _ in range(max(1000, count // 5))]
    weights = [1 / rank for rank in range(10, len(words) + 10)]
    keys = dict[str, None]()
    while len(keys) < count:
        drawn = iter(chance.choices(words, weights, k=30_000))
        for _ in range(10_000):
            name = " ".join(next(drawn) for _ in range(chance.choice((1, 2, 2, 3, 4))))
            keys[name] = None
            if chance.random() < 0.02:
                place = chance.randrange(len(name))
                keys[name[:place] + chance.choice("aeiou") + name[place + 1 :]] = None
            if chance.random() < 0.01:
                keys["".join(word[0] for word in name.split())] = None
    names = list(keys)[:count]
    columns = {"n": range(count), "key": names, "type": chance.choices(_TYPES, k=count)}
    frequency = [int(chance.paretovariate(1.2)) for _ in names]
    schema = {"n": pl.Int32, "key": pl.String, "type": pl.String, "frequency": pl.Int64}
    return pl.DataFrame({**columns, "frequency": frequency}, schema)


@click.command()
@click.option("--names", "count", default=200_000, show_default=True)
@click.option("--vectors", default=0, show_default=True, help="Numbers of each vector; 0: no vectors.")
@click.option("--memory", default="1.2GB", show_default=True)
@click.option("--edit", is_flag=True, help="Measure the stage in an index, and again after an edit.")
def main(count: int, vectors: int, memory: str, edit: bool) -> None:
    """Print pairs, CPU seconds and peak memory."""
    chance, numbers = random.Random(0), np.random.default_rng(0)
    names = made_up(count, chance)
    if edit:
        with tempfile.TemporaryDirectory() as folder:
            measure_edit(names, Index(Path(folder) / "index" / "working.duckdb"))
        return
    ends = numbers.integers(0, count, (3 * count, 2), dtype=np.int32)
    edges = pl.DataFrame({"a": np.concatenate([ends[:, 0], ends[:, 1]]), "b": np.concatenate([ends[:, 1], ends[:, 0]])})
    began, wall = time.process_time(), time.perf_counter()
    parts = (
        pl.DataFrame({"n": rows, "vector": numbers.standard_normal((len(rows), vectors), dtype=np.float32)})
        for rows in np.array_split(np.arange(count if vectors else 0, dtype=np.int32), count // 10_000 + 1)
        if len(rows)
    )
    with tempfile.TemporaryDirectory() as spill:
        pairs = candidate_pairs(
            names,
            edges,
            parts,
            lambda n: pl.DataFrame({"n": n, "document": n.cast(pl.Int64) % 1000}),
            Limits(memory, Path(spill)),
        )
    print(
        f"{count:,} names: {pairs.height:,} pairs, {time.process_time() - began:.0f} CPU s, "
        f"{time.perf_counter() - wall:.0f} s, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"
    )
    print(pairs["kinds"].value_counts(sort=True).head(8))


_ENTITIES = """
INSERT INTO entities BY NAME
SELECT md5(key) AS id, n AS human_readable_id, key AS title, key AS title_key, type, '' AS description,
       ['u' || n % 1000] AS text_unit_ids, frequency, 3 AS degree FROM names
"""
_RELATIONSHIPS = """
INSERT INTO relationships BY NAME
SELECT md5(a.key || b.key) AS id, a.n AS human_readable_id, a.key AS source, b.key AS target, md5(a.key) AS source_id,
       md5(b.key) AS target_id, '' AS description, 1.0 AS weight
FROM names a JOIN names b ON b.n = (a.n::BIGINT * 7 + 13) % (SELECT count(*) FROM names)
"""


def measure_edit(names: pl.DataFrame, index: Index) -> None:
    """Print the CPU seconds of the stage for all names, and after five have another frequency."""
    with index.working.transaction() as connection:
        for statement in (_ENTITIES, _RELATIONSHIPS):
            execute_with(connection, statement, names=names)
    for done in ("all names", "after an edit of five"):
        began = time.process_time()
        found = update_candidates(index, "benchmark")
        rows = found.result.changes["entity_candidates"].rows
        print(f"{done}: {rows:,} pairs, {time.process_time() - began:.2f} CPU s")
        with index.working.transaction() as connection:
            some = connection.sql("FROM entities ORDER BY id LIMIT 5").pl()
            edited = some.with_columns(pl.col("frequency") + 1)
            replace_rows(connection, schema.ENTITIES, edited, "id", some["id"])


if __name__ == "__main__":
    main()
