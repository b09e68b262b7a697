"""Sentences: where they end, and that they cover the text; languages of texts, and stems."""

import doctest
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.text.abbreviations import initials_fit
from graphrag_assets.text.languages import UNKNOWN, language_of, stem
from graphrag_assets.text.words import sentences

MODULES = [
    *("text.abbreviations", "text.entities", "text.inflections", "text.iso_dates", "text.languages", "text.references"),
    *("text.words", "reading.markdown", "reading.document_dates"),
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_hold(module: str) -> None:
    results = doctest.testmod(import_module(f"graphrag_assets.{module}"))
    assert results.failed == 0 < results.attempted


def test_a_compound_of_many_parts_is_compared_with_an_abbreviation_at_once() -> None:
    name = f"Atlantic {'-'.join(['Ala'] * 200)}"
    assert initials_fit("AAAAAAAAAA", name)
    assert not initials_fit("AAAAAAAAAB", name)  # a regular expression would not end


def split(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]


def paragraph_ends(text: str) -> list[str]:
    return [text[s.start : s.end].strip() for s in sentences(text) if s.ends_paragraph]


@given(st.text(alphabet="aB1.!?# |-*)\n\r\t “”电。😀", max_size=200))
def test_sentences_adjoin_and_cover_the_text(text: str) -> None:
    assert "".join(split(text)) == text
    assert all(s.start < s.end for s in sentences(text))


@given(st.text(alphabet="aB. #|-\n\t", max_size=200))
def test_white_space_belongs_to_the_sentence_before(text: str) -> None:
    assert not any(s[0].isspace() for s in split(text)[1:])


@pytest.mark.parametrize(
    "sentence",
    [
        "Am 14. April kam er, z. B. mit Frau Dr. Weber, vgl. Abs. 2, Nr. 5.",
        "Frist: 31. Dezember, das 2. Schiff im 19. Jahrhundert bzw. S. 12.",
        "Capt. Anderson met Lt. Dayman of R. S. Newall & Co., approx. 5 miles off, see Vol. 2.",
        "M. Moreau et Mme. Le Goff vinrent av. midi, cf. chap. 2, env. 5 km.",
        "El Sr. Salcedo y la Sra. Ruiz, p. ej. Ud. mismo, pág. 5, núm. 3.",
        "В 1894 г. А. С. Громов, т. е. астроном, жил в г. Москве, см. рис. 5 и стр. 3.",
    ],
)
def test_abbreviations_and_ordinals_of_several_languages_end_no_sentence(sentence: str) -> None:
    assert split(f"{sentence} 1865 kam. Then.") == [f"{sentence} ", "1865 kam. ", "Then."]


def test_a_blank_line_ends_a_sentence_and_a_paragraph() -> None:
    text = "STAVE ONE\n \n\nMarley was dead. No doubt.\r\n\r\nNone"
    assert split(text) == ["STAVE ONE\n \n\n", "Marley was dead. ", "No doubt.\r\n\r\n", "None"]
    assert paragraph_ends(text) == ["STAVE ONE", "No doubt."]


@pytest.mark.parametrize(
    "expected",
    [
        ["Ships:\n", "- Niagara\n  ", "* Agamemnon\n", "2. Great Eastern. ", "She was big.\n"],
        ["| a. | B |\n", "|---|---|\n", "| c? D | e |\n\n", "After."],
        ["电缆断了。", "船回来了！"],
        ["Mr. Field met Dr. Thomson\nin London. ", "They sailed."],
    ],
)
def test_list_items_rows_of_tables_and_chinese_sentences_are_sentences(expected: list[str]) -> None:
    assert split("".join(expected)) == expected


def test_an_edit_leaves_sentences_in_distant_paragraphs_as_they_are() -> None:
    paragraphs = [f"He said 'this is number {i}'. It was true, wasn't it? Yes!\n\n" for i in range(2000)]
    edited = ["Another opening, of a different length altogether.\n\n", *paragraphs[1:]]
    assert split("".join(edited))[1:] == split("".join(paragraphs))[3:]


TEXTS = {
    "en": "Customers complained about late deliveries. The company promised refunds.",
    "de": "Die Kunden beschwerten sich über verspätete Lieferungen. Die Firma versprach Erstattungen.",
    "fr": "Les clients se sont plaints de livraisons tardives. L'entreprise a promis des remboursements.",
    "es": "Los clientes se quejaron de entregas tardías. La empresa prometió reembolsos.",
    "ru": "Клиенты жаловались на задержки доставки. Компания обещала вернуть деньги.",
    "pl": "Klienci skarżyli się na opóźnione dostawy. Firma obiecała zwrot pieniędzy.",
    "zh": "客户抱怨送货延迟。公司承诺退款。",
    "th": "เรือออกจากท่าเรือตอนรุ่งสาง",
}


@pytest.mark.parametrize(("language", "text"), TEXTS.items())
def test_language_of_two_sentences(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", " \n\t", "1866", "?!", "ok", "Cyrus Field", "\ud800", "x = 1"])
def test_too_little_text_has_no_language(text: str) -> None:
    assert language_of(text) == UNKNOWN


def test_language_is_detected_from_the_beginning_of_a_long_text() -> None:
    assert language_of("\n" * 5_000 + TEXTS["de"] * 20 + TEXTS["en"] * 1_000) == "de"


@pytest.mark.parametrize(
    ("word", "language", "expected"),
    [("обещала", "ru", "обеща"), ("定海", "zh", "定海"), ("customers", UNKNOWN, "customers")],
)
def test_stem(word: str, language: str, expected: str) -> None:
    assert stem(word, language) == expected
