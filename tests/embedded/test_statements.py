"""What of a passage is a statement, and how much of its surroundings is quoted with it."""

from graphrag_assets.contracts.answering import CLOSEST, Evidence, Passage
from graphrag_assets.embedded.answerer import respond
from graphrag_assets.embedded.statements import statements


def quoted(question: str, text: str, title: str = "") -> list[str]:
    answer = respond(question, Evidence("", (Passage("Sources", 1, title, text),))).text
    return [part.strip(" -\n") for part in answer.removeprefix(CLOSEST).split("[Data: Sources (1)]") if part]


def test_headings_items_and_rows_are_statements_with_their_introductions() -> None:
    text = (
        "# Pump\n\nIt needs:\n\n- oil,\n- a filter.\n\n## Data\n\n| part | weight |\n| --- | --- |\n| body | 9 kg |\n"
        "| lid | 1 kg |\n"
    )
    found = statements(text, 0, 0)
    assert [(one.kind, one.text) for one in found] == [
        ("heading", "Pump"),
        ("sentence", "It needs:"),
        ("item", "- oil,"),
        ("item", "- a filter."),
        ("heading", "Data"),
        ("header", "| part | weight |"),
        ("row", "| body | 9 kg |"),
        ("row", "| lid | 1 kg |"),
    ]
    assert [one.headings for one in found] == [(), (0,), (0,), (0,), (0,), (0, 4), (0, 4), (0, 4)]
    assert [one.lead for one in found] == [None, None, 1, 1, None, None, 5, 5]
    assert [one.block for one in found] == [0, 1, 2, 2, 4, 5, 5, 5]
    assert all(one.text == text[one.start : one.end] for one in found)


def test_row_is_quoted_with_the_header_of_its_table() -> None:
    text = "| part | dishwasher |\n| --- | --- |\n| tray | yes |\n| tank | no |\n"
    assert quoted("Can the tank go into the dishwasher?", text)[0] == "part | dishwasher … tank | no"


def test_fact_in_a_heading_is_quoted_with_what_follows() -> None:
    text = "# Releases\n\n## 3.1 (2024-09-05)\n\nFixes the clock.\n\n## 3.0 (2024-03-21)\n\nRequires TOML. Drops XML."
    assert quoted("When was release 3.0 made?", text)[0] == "3.0 (2024-03-21) … Requires TOML."


def test_item_is_quoted_with_the_items_around_it_up_to_a_length() -> None:
    text = "It needs:\n\n" + "\n".join(f"- part {number} of the {'long ' * 5}list" for number in range(40))
    (answer,) = quoted("What is part 20 of the list?", text)[:1]
    assert answer.startswith("It needs: … ")
    assert "part 20" in answer
    assert 300 < len(answer) <= 520
