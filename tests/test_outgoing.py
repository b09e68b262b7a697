"""Text for people shows what documents, models and servers say; it does nothing."""

import re

import polars as pl
import pytest
from markdown import Markdown

from graphrag_assets.assets.stages import markdown_table
from graphrag_assets.query.results import Answer, answer_to_markdown
from graphrag_assets.runtime.outgoing import as_markdown, literal_markdown, safe_markdown

ATTACKS = (
    "[x](https://evil.example/?q=secret)",
    "![x](https://evil.example/a.png)",
    "![x][y]\n\n[y]: https://evil.example/a.png",
    "<img src=https://evil.example/a.png>",
    "<script>alert(1)</script>",
    "<https://evil.example>",
    "a \\| b",
    "`code` ``more`` \\`",
    "**bold** _it_ ~~gone~~",
    "&lt;img&gt; &amp;",
    "line\r\nnext\n\n# Heading\n- item",
    "\x1b[31mred\x1b[0m \x07 \u202eabc",
)
ACTIVE = re.compile("<(?:a|img|script|iframe|svg)\\b|\\son\\w+=", re.IGNORECASE)


def rendered(markdown: str) -> str:
    return Markdown(extensions=["tables"]).convert(markdown)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_cell_of_a_table_shows_an_attack_as_it_is_written(attack: str) -> None:
    table = markdown_table(pl.DataFrame({"title": [attack], "n": [1]}))
    assert len(table.splitlines()) == 3
    html = rendered(table)
    assert not ACTIVE.search(html), html
    assert html.count("<td>") == 2, html  # no cell more
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", table)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_answer_keeps_its_form_and_nothing_that_acts(attack: str) -> None:
    text = f"**Yes.**\n\n- one\n- two {attack}"
    answer = Answer("local", attack, text, [], [attack], {}, {}, 0.1, "a model", 1)
    html = rendered(answer_to_markdown(answer))
    assert "<strong>Yes.</strong>" in html
    assert "<li>one</li>" in html
    assert not ACTIVE.search(html), html


def test_text_in_a_fence_cannot_close_it() -> None:
    shown = literal_markdown("before\n````\n![x](https://evil.example/a.png)")
    fence, *inside, last = shown.splitlines()
    assert fence == last == "`````"
    assert inside == ["before", "````", "![x](https://evil.example/a.png)"]


def test_a_secret_is_masked_before_a_cell_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "quite-a-secret-value")
    shown = markdown_table(pl.DataFrame({"error": ["x" * 70 + " quite-a-secret-value"]}))
    assert "quite-a" not in shown
    for written in (as_markdown, safe_markdown, literal_markdown):
        assert "secret" not in written("said: quite-a-secret-value")
