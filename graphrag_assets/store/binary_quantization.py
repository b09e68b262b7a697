"""Binary quantization of vectors: a fast first pass over large indexes.

The signs of a randomly rotated vector keep its angles (Charikar 2002, "Similarity estimation techniques from rounding
algorithms"): the fewer bits two vectors differ in, the nearer they are. The mean is subtracted first, because a
component that all vectors share does not distinguish them; rotation spreads the information of a few dimensions over
all bits. The few hundred nearest by bits are then compared exactly. The rotation is three rounds of random signs and a
Hadamard transform (Ailon and Chazelle 2006, "Approximate nearest neighbors and the fast Johnson-Lindenstrauss
transform"), which needs no storage.
"""

import hashlib

import duckdb
import numpy as np
import polars as pl

from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.schema import Table, table

EXACT_UP_TO = 50_000
"""Up to this many rows of a kind, all vectors are compared; above, only those selected by their bits."""

KINDS = ("text_unit", "entity", "community_report")
_ROUNDS = 3
_VECTORS_PER_PART = 20_000
_WORD = 64


def codes_table(kind: str, words: int) -> Table:
    """The table with the binary codes of a kind: `words` numbers of 64 bits."""
    columns = ((f"bits_{i}", "UBIGINT", f"Bits {i * _WORD} to {i * _WORD + _WORD - 1}.") for i in range(words))
    comment = f"Sign bits of the centered and rotated embeddings of kind {kind}, 64 to a column."
    number = ("number", "BIGINT", "human_readable_id of the embedded row.")
    return table(f"search.{kind}_binary_codes", comment, "number", number, *columns)


def means_table(dimensions: int) -> Table:
    """The table with the mean vector of each kind that has binary codes."""
    return table(
        "search.embedding_means",
        "Mean vector of each kind that has binary codes; it is subtracted before the bits are taken.",
        "kind",
        ("kind", "VARCHAR", "text_unit, entity or community_report."),
        ("mean", f"FLOAT[{dimensions}]", "The mean of its vectors."),
    )


def binary_codes(vectors: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Binary codes, uint64 (n, words), of `vectors` (n, dimensions); words · 64 is a power of two."""
    n, dimensions = vectors.shape
    size = max(_WORD, 1 << (dimensions - 1).bit_length())
    rotated = np.zeros((n, size), np.float32)
    np.subtract(vectors, mean, out=rotated[:, :dimensions])
    rows = 1 << (size.bit_length() // 2)
    left, right = _hadamard(rows), _hadamard(size // rows)
    for flips in _flips(size):
        rotated *= flips
        # The Hadamard matrix of size a·b is the Kronecker product of those of a and b: two small products do it.
        rotated = (left @ rotated.reshape(n, rows, -1) @ right).reshape(n, size)
    return np.packbits(rotated > 0, axis=1).view(">u8").astype(np.uint64)


def _flips(size: int) -> np.ndarray:
    """Float array (rounds, size) of random signs, the same in every run."""
    stream = hashlib.shake_128(b"graphrag_assets sign bits").digest(_ROUNDS * size // 8)
    return np.unpackbits(np.frombuffer(stream, np.uint8)).reshape(_ROUNDS, size).astype(np.float32) * 2 - 1


def _hadamard(size: int) -> np.ndarray:
    """The Hadamard matrix of a power of two, scaled to keep lengths."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.float32(np.sqrt(size))


def write_binary_codes(connection: duckdb.DuckDBPyConnection) -> None:
    """Binary codes for each kind with more than EXACT_UP_TO embeddings in the publication open in `connection`."""
    for kind in KINDS:
        count, last, dimensions = _extent(connection, kind)
        if count <= EXACT_UP_TO:
            continue
        parts = [(start, start + _VECTORS_PER_PART) for start in range(0, last + 1, _VECTORS_PER_PART)]
        total = np.zeros(dimensions)
        for part in parts:
            total += _vectors(connection, kind, *part)[1].sum(axis=0, dtype=np.float64)
        mean = (total / count).astype(np.float32)
        connection.execute(means_table(dimensions).ddl())
        connection.execute("INSERT INTO search.embedding_means VALUES ($kind, $mean)", {"kind": kind, "mean": mean})
        words = binary_codes(mean[np.newaxis], mean).shape[1]
        connection.execute(codes_table(kind, words).ddl())
        for part in parts:
            _write_codes(connection, kind, *_vectors(connection, kind, *part), mean)


def update_binary_codes(connection: duckdb.DuckDBPyConnection) -> bool:
    """Replace the codes of the vectors in the temporary table touched_embeddings (id).

    The mean stays as it was: any vector near the middle serves.

    Returns:
        false if a kind has become large enough to have codes, or too small.
    """
    means = _means(connection)
    for kind in KINDS:
        count = one_value(connection, "SELECT count(*) FROM embeddings WHERE kind = $kind", {"kind": kind})
        if (kind in means) != (count > EXACT_UP_TO):
            return False
        if kind in means:
            connection.execute(
                f"DELETE FROM search.{kind}_binary_codes WHERE number NOT IN "
                "(SELECT number FROM embeddings WHERE kind = $kind AND id NOT IN (FROM touched_embeddings))",
                {"kind": kind},
            )
            found = connection.sql(
                "SELECT number, vector FROM embeddings SEMI JOIN touched_embeddings USING (id) "
                "WHERE kind = $kind ORDER BY number",
                params={"kind": kind},
            ).pl()
            if found.height:
                vectors = found["vector"].to_numpy().reshape(found.height, -1)
                _write_codes(connection, kind, found["number"].to_numpy(), vectors, means[kind])
    return True


def _means(connection: duckdb.DuckDBPyConnection) -> dict[str, np.ndarray]:
    """The mean vectors of the kinds that have binary codes."""
    try:
        found = connection.execute("SELECT kind, mean FROM search.embedding_means").fetchall()
    except duckdb.CatalogException:  # no kind is large enough
        return {}
    return {kind: np.array(mean, np.float32) for kind, mean in found}


def _extent(connection: duckdb.DuckDBPyConnection, kind: str) -> tuple[int, int, int]:
    """How many vectors of a kind there are, their last number and their dimensions."""
    query = "SELECT count(*), max(number), any_value(len(vector)) FROM embeddings WHERE kind = $kind"
    ((count, last, dimensions),) = connection.execute(query, {"kind": kind}).fetchall()
    return count, last, dimensions


def _write_codes(
    connection: duckdb.DuckDBPyConnection, kind: str, numbers: np.ndarray, vectors: np.ndarray, mean: np.ndarray
) -> None:
    bits = binary_codes(vectors, mean)
    columns = {f"bits_{i}": bits[:, i] for i in range(bits.shape[1])}
    codes = pl.DataFrame({"number": numbers, **columns})
    execute_with(connection, f"INSERT INTO search.{kind}_binary_codes BY NAME FROM codes", codes=codes)


def _vectors(connection: duckdb.DuckDBPyConnection, kind: str, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and vectors of the rows of a kind with numbers from `start` to before `end`, by number."""
    found = connection.sql(
        "SELECT number, vector FROM embeddings WHERE kind = $kind AND number >= $start AND number < $end "
        "ORDER BY number",
        params={"kind": kind, "start": start, "end": end},
    ).pl()
    return found["number"].to_numpy(), found["vector"].to_numpy().reshape(len(found), -1)
