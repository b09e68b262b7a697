"""Batches of documents that are quick to index and differ from each other."""

from pathlib import Path

PEOPLE = ("Cyrus Field", "William Thomson", "Charles Bright", "Samuel Canning", "Daniel Gooch", "Robert Halpin")
PLACES = ("Valentia", "Newfoundland", "Heart's Content", "Brest", "Porthcurno", "Bombay")


def write_batches(folder: Path, batches: int, documents: int = 4, sentences: int = 120) -> None:
    """`batches` folders of text files."""
    for batch in range(batches):
        (folder / f"batch-{batch:03}").mkdir(parents=True)
        for document in range(documents):
            (folder / f"batch-{batch:03}" / f"{document}.txt").write_text(_text(batch, document, sentences))


def write_crews(folder: Path, crews: int) -> None:
    """A batch with a document for each crew, whose members know nobody else: each crew is a community."""
    (folder / "crews").mkdir(parents=True)
    for n in range(crews):
        names = [f"Captain {letter}{n}mer Smith" for letter in "ABC"]
        pairs = [f"{one} met {other} in Port{n}ville." for one in names for other in names if one != other]
        (folder / "crews" / f"{n}.txt").write_text(" ".join(pairs))


def _text(batch: int, document: int, sentences: int) -> str:
    lines = []
    for n in range(sentences):
        seed = batch * 7 + document * 3 + n
        who, whom = PEOPLE[seed % 6], PEOPLE[(seed // 2 + 1) % 6]
        lines.append(
            f"In {1850 + seed % 50} {who} met {whom} in {PLACES[seed % 5]}. "
            f"The ship Caroline{seed % 17} carried {batch}.{document}{n:03} miles of cable to {PLACES[(seed + 3) % 6]}."
        )
    return "\n\n".join(lines)
