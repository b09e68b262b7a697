"""Names with dots, digits and years, types by evidence, and words that are no names, in texts of other kinds."""

from pathlib import Path

import pytest

from graphrag_assets.embedded.extractor import extract_unit
from tests.embedded.labeled import labeled_texts, scores

NEWS = Path(__file__).parent / "labeled_news.txt"


def types_of(text: str, title: str = "", language: str = "en") -> dict[str, str]:
    return {entity.title: entity.type for entity in extract_unit(text, title, language).entities}


def test_names_of_news_are_found_and_typed_right() -> None:
    found = scores(labeled_texts(NEWS))
    assert found.f1 >= 0.94
    assert found.right_types >= 0.9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They moved the service to Node.js in May. D3.js draws.", {"Node.js", "D3.js"}),
        ("The .NET runtime and ASP.NET Core need C++, C# and A*.", {".NET", "ASP.NET Core", "C++", "C#", "A*"}),
        ("ASP.NET stays. Then Amazon.com grew.", {"ASP.NET", "Amazon.com"}),
        ("She flew on a Boeing 737 to Lisbon. Two Boeing 737 jets stayed.", {"Boeing 737", "Lisbon"}),
        ("World War I, with Charles I at home.", {"World War I", "Charles I"}),
        ("File the 2023 Tax Return by April. Your 2022 Tax Return is late.", {"2023 Tax Return", "2022 Tax Return"}),
        ("They run Node.js 20 on Windows 11. Windows 11 runs it.", {"Node.js 20", "Windows 11"}),
        ("Apollo 11 landed. The crew of Apollo 13 came home.", {"Apollo 11", "Apollo 13"}),
        ("Disney+ showed it. Then Yahoo! bought AT&T.", {"Disney+", "Yahoo", "AT&T"}),
        ("She flew a Boeing 737/747. The Type A Pump broke.", {"Boeing 737/747", "Type A Pump"}),
        ("Marks & Spencer paid. Like Zorvex, it is open.", {"Marks & Spencer", "Zorvex"}),
        ("Anna Bell: Mm-hmm. Ahh.\n\nPeter Roe: Uh-huh. Shh!", {"Anna Bell", "Peter Roe"}),
        ("Deze haven is oud. Zorvex grew.", {"Zorvex"}),
        ("They saw Arsenal 2 Everton 1, and Bruno Keller scored in 1996.", {"Arsenal", "Everton", "Bruno Keller"}),
        ("In 1866 Cyrus Field came. The London I know is gone.", {"Cyrus Field", "London"}),
        ("He left London in 1866. Then the wind turned.In spring he died.", {"London"}),
        ("The Har\u00adbour Bank and the Harbour\u200b Bank are one.", {"Harbour Bank"}),
    ],
)
def test_dots_digits_and_years_belong_to_the_name_as_it_is_written(text: str, expected: set[str]) -> None:
    assert {name for name, kind in types_of(text).items() if kind != "CONCEPT"} == expected


@pytest.mark.parametrize(
    "text",
    [
        "We host on GitHub and search with Google. GitHub closed it. Google said so.",
        "Microsoft made TypeScript. Microsoft's parser is old.",
        "In Kubernetes, pods run. We deployed Kubernetes. Kubernetes started them.",
        "The service was written in Rust and runs in Docker. Rust compiled it. Docker started it.",
        "Vite starts. API and CI failed.",
        "It is in Settings, in Transactions and in Quorrin cultures. It comes in Assorted Colors. Go to Preferences.",
        "Zorvex Slate exports notes. They use Zorvex.",
    ],
)
def test_products_and_firms_are_neither_persons_nor_places(text: str) -> None:
    assert {kind for kind in types_of(text).values() if kind != "CONCEPT"} == {"NAME"}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("They met Barry. Barry's hat was wet.", "Barry", "PERSON"),
        ("Ulf Tarn mended it.", "Ulf Tarn", "PERSON"),
        ("A plant of Akron, Ohio burned.", "Akron", "GEO"),
        ("She moved to Harnosand.", "Harnosand", "GEO"),
        ("They met in Kigali.", "Kigali", "GEO"),
        ("DeShawn Quillan won.", "DeShawn Quillan", "PERSON"),
        ("Captain McDonald came.", "McDonald", "PERSON"),
    ],
)
def test_evidence_gives_a_type(text: str, name: str, kind: str) -> None:
    assert types_of(text)[name] == kind


def test_a_word_before_a_name_does_not_take_its_place() -> None:
    text = "Wikidata grew. [12:04] As Wikidata grew, it paid. Today Piet Maas came. (See Hartley Bakery.)"
    assert set(types_of(text)) == {"Wikidata", "Piet Maas", "Hartley Bakery"}


def test_a_longer_name_takes_the_mentions_of_a_more_frequent_word_only_if_it_is_a_persons() -> None:
    stray = "Gebruik Zorvex Brintal dagelijks. Brintal grew. They sold Brintal again."
    assert "Brintal" in types_of(stray)
    assert set(types_of("Anna Brintal came. Brintal grew. Brintal slept. They saw Brintal.")) == {"Anna Brintal"}


@pytest.mark.parametrize(
    ("text", "title", "language"),
    [
        ("Article 5\n----\nIt rained, as Article 7 and Section 12 say.", "Article 5", "en"),
        ("Article 5\n\nLe maire tient le registre.", "Article 5", "fr"),
        ("§ 12\n\nAbsatz 3 gilt im Winter. Nach Artikel 5 gilt er nicht.", "", "de"),
        ("Статья 5\n\nОн читает её зимой.", "Статья 5", "ru"),
        ("It rained.", "2024-03-04", "en"),
    ],
)
def test_numbered_headings_and_dates_are_no_names(text: str, title: str, language: str) -> None:
    assert types_of(text, title, language) == {}


def test_words_that_repeat_in_a_column_or_label_a_value_are_no_names() -> None:
    table = """| Field | Rule | Owner |
|---|---|---|
| depth | Zorvex: 63 <br />MinDepth: 1 | Anna Bell |
| load | MaxLoad: 7 <br />Optional: {} | Anna Bell |
| beam | Zorvex | Kenya |
| mast | Zorvex | Kenya |
"""
    assert set(types_of(table)) == {"Anna Bell", "Kenya"}
    assert "Zorvex" in types_of(f"{table}\nZorvex is a port. They saw Zorvex.")


def test_levels_components_and_words_of_log_lines_are_no_names() -> None:
    log = """17/06/09 20:10:40 INFO executor.Backend: Registered Handler for [TERM, HUP] of Ida Holm
Jul  1 09:00:55 host-10 sshd(pam)[43]: Zorvex refused connection requests
2016-09-28 04:30:30, Info CBS Loaded Servicing Stack"""
    assert types_of(log) == {"Ida Holm": "PERSON"}
    assert "Zorvex" in types_of("[2024-03-04, 12:04:11] Ida Holm: They love Zorvex.")


def test_a_line_of_a_dialogue_without_content_is_neither_claim_nor_description() -> None:
    unit = extract_unit("**Nora Feld:** A hundred percent.\n\n**Nora Feld:** I bought 12 tons of barley in Lund.")
    assert [claim.description for claim in unit.claims] == ["Nora Feld: I bought 12 tons of barley in Lund."]
    assert {entity.description for entity in unit.entities} == {"Nora Feld: I bought 12 tons of barley in Lund."}


def test_german_and_russian_names_stand_in_the_nominative() -> None:
    german = "Das Gesetz der Europäischen Union gilt. In den Ländern Niederfeld und Oberfeld gilt es nicht."
    assert set(types_of(german, "", "de")) == {"Europäische Union", "Niederfeld", "Oberfeld"}
    russian = "Он жил в Москве. Он любил Москву. Вчера Ивана Петрова видели в Самаре."
    assert types_of(russian, "", "ru") == {"Москва": "GEO", "Иван Петров": "PERSON", "Самара": "GEO"}
    assert types_of("В Москве Анна Каренина ждала. О Анной Карениной писали.", "", "ru") == {
        "Москва": "GEO",
        "Анна Каренина": "PERSON",
    }
