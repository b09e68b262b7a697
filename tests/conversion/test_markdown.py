"""What is left out of web pages and PDFs, and what stays."""

import pytest

pytest.importorskip("markitdown")

from graphrag_assets.conversion.landmarks import main_content
from graphrag_assets.conversion.markdown import to_markdown
from graphrag_assets.conversion.running_lines import without_running_lines


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<nav>Home</nav><p>It broke.</p><footer>Imprint</footer>", "It broke."),
        ("<header>Logo <nav>Home</nav></header><main><h1>The cable</h1>It broke.</main>", "# The cable\n\nIt broke."),
        ("<header>Logo <h1>The cable</h1></header><p>It broke.</p>", "# The cable\n\nIt broke."),  # the only title
        ("<article><header><h1>The cable</h1></header>It broke.</article>", "# The cable\n\nIt broke."),
        ("<main>It broke. <aside>Related</aside></main>", "It broke."),
        ("<article>It broke.<aside> In 1858.</aside><footer> Field</footer></article>", "It broke. In 1858. Field"),
        ('<div role="navigation">Home</div><div role="contentinfo">Imprint</div><p>It broke.</p>', "It broke."),
        ("<p>It broke.</p><script>track()</script><style>p {}</style><template>x</template>", "It broke."),
        ("<nav>Home</nav><script>track()</script>", "Home"),  # nothing else is left
    ],
)
def test_landmarks_of_a_web_page_are_left_out(html: str, text: str) -> None:
    assert to_markdown(f"<html><body>{html}</body></html>".encode(), "html").text == text


def test_a_page_of_deeply_nested_landmarks_takes_a_moment() -> None:
    assert "Deep" in main_content("<section>" * 5_000 + "<header>" * 5_000 + "Deep")


def page(number: int, top: str, bottom: str) -> str:
    body = "\n".join(
        f"The cable {word} {number * 7}." for word in ("was laid", "broke", "held", "sank", "worked", "led")
    )
    return f"{top}\n\n{body}\n\n{bottom}\n"


BODIES = [page(number, "", "").strip() for number in range(8)]


def bodies(pages: list[str]) -> list[str]:
    return [text.strip() for text in without_running_lines(pages)]


def test_running_headers_and_page_numbers_are_left_out() -> None:
    pages = [page(number, "The Atlantic  Telegraph", f"Page {number + 1} of 6") for number in range(6)]
    assert bodies(pages) == ["The Atlantic  Telegraph\n\n" + BODIES[0], *BODIES[1:6]]  # it may be the title


def test_left_and_right_pages_may_have_headers_of_their_own() -> None:
    tops = ["", *(f"{n} The Telegraph" if n % 2 else f"Chapter One {n}" for n in range(1, 8))]
    assert bodies([page(number, top, "") for number, top in enumerate(tops)]) == BODIES


@pytest.mark.parametrize(
    "tops",
    [
        [
            "Figures 3,141 of 5",
            "Figures 59 of 26",
            "Figures 5,358 of 97",
            "Figures 9 of 3",
        ],  # numbers that count nothing
        ["Summary", "", "", "", "", "Summary"],
        ["Summary", "", "", "Summary", "", "", "", "", "Summary"],
    ],
)
def test_lines_that_do_not_repeat_page_after_page_stay(tops: list[str]) -> None:
    pages = [page(number, top, "") for number, top in enumerate(tops)]
    assert without_running_lines(pages) == pages


def test_a_line_that_repeats_within_the_text_stays() -> None:
    pages = [f"One {n * 5}\nTwo {n * 9}\nThe same line\nThree {n * 4}\nFour {n * 8}\nFive {n * 3}" for n in range(5)]
    assert without_running_lines(pages) == pages


def pdf(pages: list[list[str]]) -> bytes:
    """A PDF with these lines on its pages."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        drawn = "\n".join(f"BT /F1 11 Tf 72 {760 - 40 * row} Td ({line}) Tj ET" for row, line in enumerate(lines))
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    body = "".join(f"{number} 0 obj\n{content}\nendobj\n" for number, content in enumerate(objects, start=1))
    return f"%PDF-1.4\n{body}trailer << /Size {len(objects) + 1} /Root 1 0 R >>\n%%EOF".encode()


def test_running_lines_of_a_pdf_are_left_out() -> None:
    pages = [["The Atlantic Telegraph", *BODIES[number].split("\n"), f"- {number + 1} -"] for number in range(4)]
    lines = [line for line in to_markdown(pdf(pages), "pdf").text.splitlines() if line.strip()]
    assert lines == ["The Atlantic Telegraph", *"\n".join(BODIES[:4]).split("\n")]
