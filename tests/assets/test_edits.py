"""Communities and reports after edits: what an edit reads, and that updating again changes nothing."""

from pathlib import Path

import pytest

from graphrag_assets.assets import reports
from tests.comparison import index_all


def test_a_sentence_about_a_hub_reads_no_reports_of_its_neighbors(start_with, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "Ada Brook",
        "Bela Crane",
        "Carl Dorn",
        "Dora Eland",
        "Egon Falk",
        "Frida Gold",
        "Greg Hart",
        "Hedda Ibsen",
    )
    families = [(name, name.replace(" ", "x "), f"{name}son") for name in names]
    documents = {
        f"{n}/{n}.md": f"{one} met {two}. {two} met {three}. {three} met {one}. " * 4 + f"{one} met Quentin Zorn. " * 2
        for n, (one, two, three) in enumerate(families)
    }
    index = start_with(documents).index
    degree = index.working.read("SELECT degree FROM entities WHERE title = 'Quentin Zorn'").item()
    assert degree == len(families)
    seen: dict[str, int] = {}
    write = reports.community_reports

    def counted_reports(inputs, *given, **more):
        seen["reports"] = seen.get("reports", 0) + inputs.communities.height
        return write(inputs, *given, **more)

    monkeypatch.setattr(reports, "community_reports", counted_reports)
    file = Path(index.settings.input_folder) / "0/0.md"
    file.write_text(file.read_text() + "Quentin Zorn went home.")
    index_all(index)
    communities = index.working.read("SELECT count(*) FROM communities").item()
    assert 0 < seen["reports"] < communities / 2
