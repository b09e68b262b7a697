"""Text units: limits, spans, GraphRAG's windows, and how little an edit changes."""

import time
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.pipeline.chunking import METHODS, TEXT_UNITS, ChunkOptions, chunk_documents
from graphrag_assets.text.words import count_tokens, tokenizer

ENCODINGS = ("o200k_base", "cl100k_base")

any_text = st.text(alphabet="aB1.!? \n#-|电缆。😀é\u0301", max_size=600) | st.text(max_size=200)
seeds = st.integers(min_value=0, max_value=10**9)


def chunk(text: str, **options: object) -> pl.DataFrame:
    documents = pl.DataFrame({"id": ["d"], "batch": ["b"], "text": [text]})
    return chunk_documents(documents, ChunkOptions(**options))  # type: ignore[arg-type]


def story(seed: int, n_sentences: int) -> list[str]:
    """Distinct sentences of 4 to 33 words in paragraphs of 1 to 9, some under a heading."""
    parts: list[str] = []
    left = 0
    for i in range(n_sentences):
        number = (seed * 7919 + i) * 2654435761 % 2**32
        if left == 0:
            left = 1 + number % 9
            if parts:
                parts[-1] = parts[-1].rstrip() + "\n\n"
            if number % 11 == 0:
                parts.append(f"## Chapter {i}\n\n")
        ships = " ".join(f"cable{(number >> k) % 997}" for k in range(3 + number % 30))
        parts.append(f"Ship {i} of {seed} laid {ships}. ")
        left -= 1
    return parts


# --- every method ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(text=any_text, size=st.integers(16, 60))
def test_units_are_spans_in_order_that_cover_the_document_but_for_white_space(
    method: str, text: str, size: int
) -> None:
    covered = [False] * len(text)
    units = chunk(text, method=method, size=size, overlap=size // 4)
    assert units.schema == TEXT_UNITS
    assert units["ordinal"].to_list() == list(range(units.height))
    for start, end, unit in units.select("start_char", "end_char", "text").iter_rows():
        assert unit == text[start:end]
        assert unit.strip()
        covered[start:end] = [True] * (end - start)
    assert all(done or char.isspace() for done, char in zip(covered, text, strict=True))
    assert units["n_tokens"].to_list() == count_tokens(units["text"].to_list())
    assert units["start_char"].is_sorted()


@given(text=any_text, size=st.integers(16, 60), encoding=st.sampled_from(ENCODINGS))
def test_no_unit_exceeds_the_size_and_none_overlap(text: str, size: int, encoding: str) -> None:
    units = chunk(text, size=size, encoding=encoding)
    assert all(n <= size for n in units["n_tokens"])
    spans = list(units.select("start_char", "end_char").iter_rows())
    assert all(left[1] <= right[0] for left, right in pairwise(spans))


@pytest.mark.parametrize("method", METHODS)
def test_ids_are_unique_even_where_texts_repeat_and_the_same_in_every_run(method: str) -> None:
    text = "The cable broke again. " * 400
    units = chunk(text, method=method, size=50, overlap=0)
    assert units["text"].n_unique() < units.height
    assert units["id"].n_unique() == units.height
    assert units.equals(chunk(text, method=method, size=50, overlap=0))


# --- tokens ---------------------------------------------------------------------------------------------


def graphrag_windows(text: str, size: int, overlap: int, encoding: str) -> list[str]:
    """GraphRAG's loop, literally."""
    encoder = tokenizer(encoding)
    tokens, result, start = encoder.encode_ordinary(text), [], 0
    while start < len(tokens):
        end = min(start + size, len(tokens))
        result.append(encoder.decode(tokens[start:end]))
        if end == len(tokens):
            break
        start += size - overlap
    return result


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=st.text(alphabet="aB1.!? \n'-é", max_size=800), overlap=st.integers(0, 15))
def test_windows_are_graphrags_where_no_character_is_cut(encoding: str, text: str, overlap: int) -> None:
    expected = graphrag_windows(text, 16, overlap, encoding)
    units = chunk(text, method="tokens", size=16, overlap=overlap, encoding=encoding)
    if not any("\ufffd" in window for window in expected):
        assert units["text"].to_list() == [window for window in expected if window.strip()]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=st.text(alphabet="电信海底𓀀😀👩\u200d🚀é", min_size=1, max_size=300))
def test_windows_never_cut_a_character_and_adjoin_without_overlap(encoding: str, text: str) -> None:
    units = chunk(text, method="tokens", size=16, overlap=0, encoding=encoding)
    assert "".join(units["text"]) == text


# --- anchored -------------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("size", [1200, 2600])
@given(
    seed=seeds,
    place=st.floats(0, 1, exclude_max=True),
    edit=st.sampled_from(["insert", "delete", "replace"]),
    new=st.integers(1, 60),
)
def test_an_edit_of_one_sentence_makes_at_most_three_new_units(
    size: int, seed: int, place: float, edit: str, new: int
) -> None:
    before = story(seed, 300)
    k = int(place * len(before))
    inserted = [] if edit == "delete" else [f"Now it reads {' '.join(f'otherwise{i}' for i in range(new))}. "]
    after = before[:k] + inserted + before[k + (edit != "insert") :]
    old, fresh = chunk("".join(before), size=size), chunk("".join(after), size=size)
    assert old.height > 8
    assert fresh.join(old, on="id", how="anti").height <= 3


def test_cuts_are_more_than_a_sixth_of_the_size_apart() -> None:
    units = chunk(" ".join(f"Ship number {i:03} laid the cable." for i in range(400)), size=96)  # of 8 tokens each
    assert min(units["n_tokens"][1:-1]) == 24


@pytest.mark.parametrize("word", ["Ship", "Boat", "Cable", "Field", "Storm", "Coil"])
def test_no_fragment_is_left_at_the_ends_of_a_document(word: str) -> None:
    units = chunk(" ".join(f"{word} {i:03} ran." for i in range(400)), size=240)
    assert min(units["n_tokens"][0], units["n_tokens"][-1]) >= 20  # half of the least distance of cuts


def test_a_document_that_fits_is_one_unit_where_a_model_extracts() -> None:
    text = "".join(story(3, 60))
    size = count_tokens([text])[0]
    assert chunk(text, size=size).height > 1
    assert chunk(text, size=size, whole=True)["text"].to_list() == [text.strip()]
    assert chunk(text, size=size // 2, whole=True).equals(chunk(text, size=size // 2))


def test_a_cut_comes_before_a_heading_and_never_after_it() -> None:
    body = "The cable was paid out slowly over the stern while the engineers watched. " * 3
    text = "".join(f"## Day {i}\n\n{body}Day {i} ended.\n\n" for i in range(60))
    units = chunk(text, size=300)
    assert all(unit.startswith("## Day") for unit in units["text"])


@pytest.mark.parametrize("text", ["word " * 20_000, "x" * 100_000, "a" + " " * 100_000 + "b"])
def test_a_line_without_an_end_is_cut_within_the_limit_in_linear_time(text: str) -> None:
    """Quadratic work in the length of a line takes minutes."""
    started = time.process_time()
    units = chunk(text)
    assert time.process_time() - started < 10
    assert max(units["n_tokens"]) <= ChunkOptions().size


def test_a_long_sentence_is_cut_at_white_space() -> None:
    text = " ".join(f"word{i * 7919 % 10007}" for i in range(5000))
    units = chunk(text, size=200)
    assert units.height > 50
    assert " ".join(units["text"]) == text
