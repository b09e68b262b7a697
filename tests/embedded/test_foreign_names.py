"""Names in German, French, Spanish and Russian: what a reader would list, and nothing in languages without capitals."""

import pytest

from graphrag_assets.contracts.records import UnitExtraction
from graphrag_assets.embedded.extractor import extract_unit
from graphrag_assets.text.languages import CASELESS, without_names
from tests.embedded.labeled import unlabeled

GERMAN_NEWS = """[Anna Vogel|PERSON] gründete 1987 in [Potsdam|GEO] die [Bäckerei Hartmann|ORGANIZATION]. Sie hatte zuvor an der [Universität Heidelberg|ORGANIZATION]
studiert. Die Bäckerei beliefert heute vier Schulen und das Krankenhaus. Gestern beschwerten sich Kunden über verspätete
Lieferungen. Der Geschäftsführer, Herr Dr. [Klaus Neumann|PERSON], entschuldigte sich bei den Kunden. Vogel sagte, der Winter sei
hart gewesen. Die [Deutsche Bahn|NAME] stellte den Verkehr nach [Berlin|GEO] ein. Neumanns Bruder arbeitet bei der [Siemens AG|ORGANIZATION] in
[München|GEO]. Das Brot wird aus Mehl, Wasser und Salz gemacht. [Ludwig van Beethoven|PERSON] wurde in Bonn geboren. Die [SPD|NAME] forderte eine
Untersuchung. Am Montag kam die Feuerwehr zu spät. Zeit und Geld fehlten. Die Kinder von Anna gingen nach Hause. Gesundheit
ist wichtig. Mit großer Freude nahm er den Preis entgegen. Der Vorstand von [Wolfsburg Motoren|NAME] tagte in [Kassel|GEO]."""
GERMAN_TALE = """Es war einmal ein König, der hatte eine Tochter. Am Abend ging sie in den Wald und setzte sich an den
Brunnen. Wenn sie Langeweile hatte, nahm sie eine goldene Kugel. Eines Tages fiel die Kugel ins Wasser. Da kam ein Frosch
und sprach: Königstochter, was weinst du? Angst und Freude wechselten in ihrem Gesicht. Der treue [Heinrich|PERSON] stand hinter dem
Wagen. Heinrich hatte drei eiserne Bänder um sein Herz. Menschen aus Städten und Dörfern kamen. Schweren Herzens ging das
Kind nach Hause. In Wirklichkeit war alles anders. Ohne Brot und Salz lebt niemand."""
GERMAN_MAIL = """Betreff: Lieferung der Ersatzteile
Von: [Sabine Krüger|PERSON]
An: [Jörg Brandt|PERSON]

Sehr geehrter Herr Brandt, vielen Dank für Ihre Nachricht. Die Ersatzteile aus Stahl sind am Dienstag eingetroffen. Leider
fehlen Schrauben, Muttern und Dichtungen. Unser Techniker, Herr [Wolter|PERSON], prüft die Unterlagen. Bitte senden Sie uns Fotos
und Angaben zur Maschine. Bei Fragen wenden Sie sich an Wolter. Mit freundlichen Grüßen"""
FRENCH = """Le maire de [Lyon|GEO], [Jean Moreau|PERSON], a inauguré la bibliothèque lundi. [Marie Dubois|PERSON], directrice de la [Société
Générale|ORGANIZATION], était présente. Elle a félicité les habitants. Hier soir, [Pierre Lefèvre|PERSON] est arrivé de [Bruxelles|GEO]. Les clients se
plaignent des retards. L'[Université de Bordeaux|ORGANIZATION] finance le projet. Selon [Le Monde|NAME], la [Banque de France|ORGANIZATION] hésite. Après la
guerre, Dubois vécut à [Marseille|GEO]. Née à [Nantes|GEO], elle étudia la chimie. Arrivé trop tard, Lefèvre manqua le train. Le
président [Macron|PERSON] a visité l'usine. D'après Moreau, c'est faux. Les [États-Unis|NAME] ont protesté."""
SPANISH = """[María García|PERSON] fundó la empresa [Soluciones del Norte|NAME] en [Bilbao|GEO]. Llegó [Pedro Sánchez|PERSON] con retraso. El presidente
[Juan de la Cruz|PERSON] habló ayer en el [Congreso|NAME]. La [Universidad de Salamanca|ORGANIZATION] es antigua. Los clientes se quejaron de las
entregas. Después de la reunión, Sánchez volvió a [Madrid|GEO]. Nació en [Sevilla|GEO] en 1950. El [Banco de España|ORGANIZATION] subió los tipos.
Cuando terminó la guerra, García emigró a [México|GEO]. Volvieron los lobos. Según [El País|NAME], nadie respondió."""
RUSSIAN = """[Иван Петров|PERSON] родился в [Самаре=Самара|GEO]. Он учился в университете. Вчера [Мария Соколова|PERSON] встретила Ивана Петрова на вокзале.
Компания «[Газпром|NAME]» построила завод. Клиенты жаловались на задержки. Министр обороны [Сергей Кузнецов|PERSON] приехал домой.
Соколова работала в Российской академии наук. По словам Соколовой, проект закрыли. Приехал [Алексей Смирнов|PERSON]. Зимой река
[Волга|GEO] замерзает. После войны Петров жил в деревне. Газета «[Известия|NAME]» сообщила об этом."""


def names(text: str, language: str) -> dict[str, str]:
    return {entity.title: entity.type for entity in extract_unit(text, "", language).entities}


@pytest.mark.parametrize(
    ("language", "labeled"),
    [("de", GERMAN_NEWS), ("de", GERMAN_TALE), ("de", GERMAN_MAIL), ("fr", FRENCH), ("es", SPANISH), ("ru", RUSSIAN)],
    ids=["german news", "german tale", "german mail", "french", "spanish", "russian"],
)
def test_names_are_found_and_nothing_else(language: str, labeled: str) -> None:
    text, expected = unlabeled(labeled)
    assert names(text, language) == expected


def test_a_surname_alone_and_other_cases_count_as_the_same_person() -> None:
    counts = {e.title: e.n_sentences for e in extract_unit(unlabeled(RUSSIAN)[0], "", "ru").entities}
    assert (counts["Иван Петров"], counts["Мария Соколова"]) == (3, 3)
    german = {e.title: e.n_sentences for e in extract_unit(unlabeled(GERMAN_NEWS)[0], "", "de").entities}
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
