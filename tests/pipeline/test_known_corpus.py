"""Documents and text units of unchanged files are kept: the rows are those of reading everything."""

from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_assets.pipeline.batch import KnownCorpus, read_corpus
from graphrag_assets.pipeline.chunking import ChunkOptions
from graphrag_assets.pipeline.loading import LoadOptions
from tests.pipeline.test_loading import WITHOUT_PROCESS, InMemoryFile

TEXTS = (
    "# The cable\n\nThe cable of 1858 failed. Cyrus Field tried again.\n\n## Again\n\nThe Great Eastern carried it.",
    "Die Kunden beschwerten sich über verspätete Lieferungen. Der Leiter antwortete am nächsten Tag.",
    "title,text\nOne,The first row.\nTwo,The second row says more than the first one.",
    "title,text\nTwo,The second row says more than the first one.\nOne,The first row.",
    "",
)
FILES = st.dictionaries(st.sampled_from(["a.md", "b.txt", "c.csv"]), st.sampled_from(TEXTS))


def read(files: dict[str, str], known: KnownCorpus | None = None):
    given_files = [InMemoryFile(f"b/{name}", text.encode()) for name, text in sorted(files.items())]
    return read_corpus("b", given_files, LoadOptions(), ChunkOptions(size=50), WITHOUT_PROCESS, known=known)


@settings(max_examples=20, deadline=None)
@given(before=FILES, after=FILES)
def test_reading_with_what_is_known_gives_the_rows_of_reading_everything(
    before: dict[str, str], after: dict[str, str]
) -> None:
    documents, text_units, _ = read(before)
    known = KnownCorpus(documents, text_units.sample(fraction=1.0, shuffle=True, seed=1))
    for kept, fresh in zip(read(after, known), read(after), strict=True):
        order = [name for name in ("id", "source", "error") if name in fresh.columns]
        assert kept.sort(order).equals(fresh.sort(order), null_equal=True)


def test_what_is_known_is_used() -> None:
    documents, text_units, _ = read({"a.md": TEXTS[0], "b.txt": TEXTS[1]})
    marked = KnownCorpus(documents.with_columns(n_tokens=7), text_units.with_columns(n_sentences=9))
    documents, text_units, _ = read({"a.md": TEXTS[0], "b.txt": TEXTS[1] + " Ende."}, marked)
    kept, edited = documents.sort("source")["id"]
    assert documents.filter(n_tokens=7)["id"].to_list() == [kept]
    assert set(text_units.filter(document_id=kept)["n_sentences"]) == {9}
    assert set(text_units.filter(document_id=edited)["n_sentences"]) == {1, 2}
