"""Languages of texts, stop words and stems."""

import pytest

from graphrag_assets.text.languages import UNKNOWN, language_of, stem

TEXTS = {
    "en": "Customers complained about late deliveries. The company promised refunds.",
    "de": "Die Kunden beschwerten sich über verspätete Lieferungen. Die Firma versprach Erstattungen.",
    "fr": "Les clients se sont plaints de livraisons tardives. L'entreprise a promis des remboursements.",
    "es": "Los clientes se quejaron de entregas tardías. La empresa prometió reembolsos.",
    "ru": "Клиенты жаловались на задержки доставки. Компания обещала вернуть деньги.",
    "it": "I clienti si lamentavano dei ritardi nelle consegne. L'azienda ha promesso rimborsi.",
    "nl": "Klanten klaagden over late leveringen. Het bedrijf beloofde terugbetalingen.",
    "pt": "Os clientes reclamaram de entregas atrasadas. A empresa prometeu reembolsos.",
    "sv": "Kunderna klagade på sena leveranser. Företaget lovade återbetalning.",
    "pl": "Klienci skarżyli się na opóźnione dostawy. Firma obiecała zwrot pieniędzy.",
    "zh": "客户抱怨送货延迟。公司承诺退款。",
    "ja": "顧客は配達の遅れについて苦情を言った。会社は返金を約束した。",
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
    [
        ("complaints", "en", "complaint"),
        ("customers", "en", "custom"),
        ("commander", "en", "command"),
        ("lieferungen", "de", "liefer"),
        ("livraisons", "fr", "livraison"),
        ("обещала", "ru", "обеща"),
        ("customers", UNKNOWN, "customers"),
        ("定海", "zh", "定海"),
        ("customers", "no such language", "customers"),
    ],
)
def test_stem(word: str, language: str, expected: str) -> None:
    assert stem(word, language) == expected
