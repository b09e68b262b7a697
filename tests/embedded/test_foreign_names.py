"""Names in German, French, Spanish and Russian: what a reader would list, and nothing in languages without capitals."""

import pytest

from graphrag_assets.contracts.records import UnitExtraction
from graphrag_assets.embedded.extractor import extract_unit
from graphrag_assets.text.languages import CASELESS, without_names

GERMAN_NEWS = """Anna Vogel gründete 1987 in Potsdam die Bäckerei Hartmann. Sie hatte zuvor an der Universität Heidelberg
studiert. Die Bäckerei beliefert heute vier Schulen und das Krankenhaus. Gestern beschwerten sich Kunden über verspätete
Lieferungen. Der Geschäftsführer, Herr Dr. Klaus Neumann, entschuldigte sich bei den Kunden. Vogel sagte, der Winter sei
hart gewesen. Die Deutsche Bahn stellte den Verkehr nach Berlin ein. Neumanns Bruder arbeitet bei der Siemens AG in
München. Das Brot wird aus Mehl, Wasser und Salz gemacht. Ludwig van Beethoven wurde in Bonn geboren. Die SPD forderte eine
Untersuchung. Am Montag kam die Feuerwehr zu spät. Zeit und Geld fehlten. Die Kinder von Anna gingen nach Hause. Gesundheit
ist wichtig. Mit großer Freude nahm er den Preis entgegen. Der Vorstand von Wolfsburg Motoren tagte in Kassel."""
GERMAN_TALE = """Es war einmal ein König, der hatte eine Tochter. Am Abend ging sie in den Wald und setzte sich an den
Brunnen. Wenn sie Langeweile hatte, nahm sie eine goldene Kugel. Eines Tages fiel die Kugel ins Wasser. Da kam ein Frosch
und sprach: Königstochter, was weinst du? Angst und Freude wechselten in ihrem Gesicht. Der treue Heinrich stand hinter dem
Wagen. Heinrich hatte drei eiserne Bänder um sein Herz. Menschen aus Städten und Dörfern kamen. Schweren Herzens ging das
Kind nach Hause. In Wirklichkeit war alles anders. Ohne Brot und Salz lebt niemand."""
GERMAN_MAIL = """Betreff: Lieferung der Ersatzteile
Von: Sabine Krüger
An: Jörg Brandt

Sehr geehrter Herr Brandt, vielen Dank für Ihre Nachricht. Die Ersatzteile aus Stahl sind am Dienstag eingetroffen. Leider
fehlen Schrauben, Muttern und Dichtungen. Unser Techniker, Herr Wolter, prüft die Unterlagen. Bitte senden Sie uns Fotos
und Angaben zur Maschine. Bei Fragen wenden Sie sich an Wolter. Mit freundlichen Grüßen"""
FRENCH = """Le maire de Lyon, Jean Moreau, a inauguré la bibliothèque lundi. Marie Dubois, directrice de la Société
Générale, était présente. Elle a félicité les habitants. Hier soir, Pierre Lefèvre est arrivé de Bruxelles. Les clients se
plaignent des retards. L'Université de Bordeaux finance le projet. Selon Le Monde, la Banque de France hésite. Après la
guerre, Dubois vécut à Marseille. Née à Nantes, elle étudia la chimie. Arrivé trop tard, Lefèvre manqua le train. Le
président Macron a visité l'usine. D'après Moreau, c'est faux. Les États-Unis ont protesté."""
SPANISH = """María García fundó la empresa Soluciones del Norte en Bilbao. Llegó Pedro Sánchez con retraso. El presidente
Juan de la Cruz habló ayer en el Congreso. La Universidad de Salamanca es antigua. Los clientes se quejaron de las
entregas. Después de la reunión, Sánchez volvió a Madrid. Nació en Sevilla en 1950. El Banco de España subió los tipos.
Cuando terminó la guerra, García emigró a México. Volvieron los lobos. Según El País, nadie respondió."""
RUSSIAN = """Иван Петров родился в Самаре. Он учился в университете. Вчера Мария Соколова встретила Ивана Петрова на вокзале.
Компания «Газпром» построила завод. Клиенты жаловались на задержки. Министр обороны Сергей Кузнецов приехал домой.
Соколова работала в Российской академии наук. По словам Соколовой, проект закрыли. Приехал Алексей Смирнов. Зимой река
Волга замерзает. После войны Петров жил в деревне. Газета «Известия» сообщила об этом."""


def names(text: str, language: str) -> dict[str, str]:
    return {entity.title: entity.type for entity in extract_unit(text, "", language).entities}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "de",
            GERMAN_NEWS,
            {
                "Anna Vogel": "PERSON",
                "Potsdam": "GEO",
                "Bäckerei Hartmann": "ORGANIZATION",
                "Universität Heidelberg": "ORGANIZATION",
                "Klaus Neumann": "PERSON",
                "Deutsche Bahn": "NAME",
                "Berlin": "GEO",
                "Siemens AG": "ORGANIZATION",
                "München": "GEO",
                "Ludwig van Beethoven": "PERSON",
                "SPD": "NAME",
                "Wolfsburg Motoren": "NAME",
                "Kassel": "GEO",
            },
        ),
        ("de", GERMAN_TALE, {"Heinrich": "PERSON"}),
        ("de", GERMAN_MAIL, {"Sabine Krüger": "PERSON", "Jörg Brandt": "PERSON", "Wolter": "PERSON"}),
        (
            "fr",
            FRENCH,
            {
                "Lyon": "GEO",
                "Jean Moreau": "PERSON",
                "Marie Dubois": "PERSON",
                "Société Générale": "ORGANIZATION",
                "Pierre Lefèvre": "PERSON",
                "Bruxelles": "GEO",
                "Université de Bordeaux": "ORGANIZATION",
                "Le Monde": "NAME",
                "Banque de France": "ORGANIZATION",
                "Marseille": "GEO",
                "Nantes": "GEO",
                "Macron": "PERSON",
                "États-Unis": "NAME",
            },
        ),
        (
            "es",
            SPANISH,
            {
                "María García": "PERSON",
                "Soluciones del Norte": "NAME",
                "Bilbao": "GEO",
                "Pedro Sánchez": "PERSON",
                "Juan de la Cruz": "PERSON",
                "Congreso": "NAME",
                "Universidad de Salamanca": "ORGANIZATION",
                "Madrid": "GEO",
                "Sevilla": "GEO",
                "Banco de España": "ORGANIZATION",
                "México": "GEO",
                "El País": "NAME",
            },
        ),
        (
            "ru",
            RUSSIAN,
            {
                "Иван Петров": "PERSON",
                "Самара": "GEO",
                "Мария Соколова": "PERSON",
                "Газпром": "NAME",
                "Сергей Кузнецов": "PERSON",
                "Алексей Смирнов": "PERSON",
                "Волга": "GEO",
                "Известия": "NAME",
            },
        ),
    ],
    ids=["german news", "german tale", "german mail", "french", "spanish", "russian"],
)
def test_names_are_found_and_nothing_else(language: str, text: str, expected: dict[str, str]) -> None:
    assert names(text, language) == expected


def test_a_surname_alone_and_other_cases_count_as_the_same_person() -> None:
    counts = {e.title: e.n_sentences for e in extract_unit(RUSSIAN, "", "ru").entities}
    assert (counts["Иван Петров"], counts["Мария Соколова"]) == (3, 3)
    german = {e.title: e.n_sentences for e in extract_unit(GERMAN_NEWS, "", "de").entities}
    assert (german["Klaus Neumann"], german["Anna Vogel"]) == (2, 3)  # "Neumanns Bruder"; "Vogel sagte", "von Anna"


def test_names_of_one_stem_stay_two_where_names_have_no_cases() -> None:
    assert set(names("Vino Julio Mora. Vio a Julia Mora y a Julio Mora.", "es")) == {"Julio Mora", "Julia Mora"}


def test_names_of_one_sentence_are_related_without_predicates_and_its_date_is_a_claim() -> None:
    unit = extract_unit("Otto Braun gründete 1987 die Siemens AG. Anna Vogel lebt in Berlin.", "", "de")
    assert {(r.source, r.type, r.target) for r in unit.relationships} == {
        ("Otto Braun", "", "Siemens AG"),
        ("Anna Vogel", "", "Berlin"),
    }
    assert [(c.subject, c.object, c.start_date) for c in unit.claims] == [("Otto Braun", "Siemens AG", "1987")]
    assert extract_unit("Otto Braun gründete 1987 die Siemens AG nicht.", "", "de").claims == []


def test_a_description_does_not_begin_with_a_pronoun_in_other_languages_either() -> None:
    unit = extract_unit("Anna Vogel ist eine Bäckerin. Sie wohnt in Potsdam.", "", "de")
    assert {e.title: e.description for e in unit.entities} == {
        "Anna Vogel": "Anna Vogel ist eine Bäckerin.",
        "Potsdam": "Anna Vogel ist eine Bäckerin. Sie wohnt in Potsdam.",
    }


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "客户抱怨送货延迟。Anna Bell 在北京。公司承诺退款。"),
        ("ja", "顧客は配達の遅れについて苦情を言った。Sony は返金を約束した。"),
        ("th", "เรือออกจากท่าเรือตอนรุ่งสาง Bangkok Post"),
        ("ar", "اشتكى العملاء من تأخر التسليم. وعدت الشركة برد الأموال."),
    ],
)
def test_nothing_is_found_in_languages_without_capitals(language: str, text: str) -> None:
    assert language in CASELESS
    assert extract_unit(text, "Anna Bell", language) == UnitExtraction()


def test_documents_without_names_are_counted_by_language() -> None:
    assert without_names(["en", "de", "und", None]) == ""
    assert without_names(["zh", "en", "ar", "zh"]) == (
        "1 document in Arabic, 2 documents in Chinese: the embedded default finds no names there; "
        "set GRAPHRAG_CHAT_MODEL, see docs/models.md"
    )
