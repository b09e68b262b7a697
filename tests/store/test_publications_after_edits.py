"""What is kept of texts by their hash, words and tokens, is what a publication without it counts."""

from pathlib import Path

from tests.comparison import SENTENCES, assert_published, index_all

GERMAN = (
    "Das Kabel wurde von Werner Siemens in Berlin geprüft. Die Brüder Siemens gründeten eine Fabrik für Kabel in "
    "Woolwich. Der Große Kurfürst lag im Hafen von Bremen."
)


def test_edits_a_language_that_comes_to_lead_and_a_first_date_are_published(start_with) -> None:
    documents = {f"a/{n}.md": f"# Part {n}\n\n{' '.join(SENTENCES[6 * n : 6 * n + 6])}" for n in range(3)}
    index = start_with({**documents, "b/german.md": GERMAN, "b/short.md": "Ships 1858"}, chunk_size="60").index
    folder = Path(index.settings.input_folder)
    (folder / "a/0.md").rename(folder / "a/renamed.md")
    (folder / "a/1.md").write_text((folder / "a/1.md").read_text().replace("# Part 1", "# Costs"))
    (folder / "a/2.md").unlink()
    index_all(index)
    assert_published(index)
    for place in range(3):
        (folder / f"b/more-{place}.md").write_text(f"{GERMAN} {place}")
    index_all(index)
    assert_published(index)  # words of texts without a language have other stems now
    (folder / "a/dated.md").write_text(f"---\ndate: 1866-07-27\n---\n{SENTENCES[0]}")
    index_all(index)
    assert_published(index)  # every row of a context has a date now
