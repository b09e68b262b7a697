"""Deterministic ids: the same thing has the same id in every run, on every machine."""

import hashlib

import polars as pl

_SEPARATOR = "\x1f"  # the unit separator cannot be typed, so ("a", "bc") and ("ab", "c") differ
_ESCAPE = "\x1e"  # in front of a separator within a part: "\x1e|"


def stable_id(*parts: object) -> str:
    """128-bit hex hash of the parts, in order. `None` counts as an empty part."""
    texts = ["" if part is None else str(part) for part in parts]
    text = _SEPARATOR.join(texts)
    if _ESCAPE in text or text.count(_SEPARATOR) != len(texts) - 1:  # escaped, no two lists of parts are one text
        text = _SEPARATOR.join(part.replace(_ESCAPE, _ESCAPE * 2).replace(_SEPARATOR, f"{_ESCAPE}|") for part in texts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def with_id(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """`frame` with the column id, the `stable_id` of `columns` in each row."""
    ids = [stable_id(*row) for row in frame.select(columns).iter_rows()]
    return frame.with_columns(pl.Series("id", ids, dtype=pl.String))


def number_of(text: str) -> int:
    """Return what DuckDB's `md5_number_lower` gives for the text: how names and terms are found in the publication."""
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little")
