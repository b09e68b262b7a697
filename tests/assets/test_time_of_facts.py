"""When facts hold: ends that texts state, what has ended in answers, and what a later statement ends."""

import pytest

from graphrag_assets.query import GraphRAG
from tests.conftest import index_once
from tests.hostile.small_files import PDF
from tests.reading.packages import docx, paragraph

ENGLISH = {
    "Boris Lang": "Boris Lang led Project Aurora until 5 July 2024.",
    "Clara Voss": "Clara Voss headed the Harbor Board from 2019 to 5 July 2024.",
    "Emil Ruud": "The contract of Emil Ruud with Kestrel Bakery ended on 5 July 2024.",
    "Greta Holt": "On 5 July 2024 Greta Holt resigned as head of Kestrel Dairy.",
    "Hugo Stein": "Hugo Stein leitete die Werft Nordhaven bis zum 5. Juli 2024.",
    "Inès Morel": "Inès Morel dirigeait la Compagnie Marenne jusqu'au 5 juillet 2024.",
    "Julio Prado": "Julio Prado dirigió la Compañía Salinas hasta el 5 de julio de 2024.",
}
STARTED = {
    "Dora Finch": "Dora Finch has led Project Borealis since 5 July 2024.",
    "Karl Munk": "Karl Munk leitet die Brauerei Lindau seit dem 5. Juli 2024.",
}
STAFF = """kind,title,target,type,description,status,start_date,end_date
claim,Alma Reyes,Payments Team,ASSIGNED_TO,Alma Reyes is assigned to the Payments Team.,TRUE,2020-01-01,2020-12-31
claim,Olaf Berg,Norhavn,LIVES_IN,Olaf Berg lives in Norhavn.,TRUE,2019,2021-06
claim,Skane Ferry,5 crowns,PRICE,The ferry costs 5 crowns.,TRUE,2019,
claim,Skane Ferry,5 crowns,PRICE,The ferry costs 5 crowns.,TRUE,2020,
claim,Skane Ferry,6 crowns,PRICE,The ferry costs 6 crowns.,TRUE,2021,
"""
SLOTS = """source,target,type,description,date
Helen Marsh,Norrsken,MANAGING_DIRECTOR_OF,Helen Marsh is managing director.,2024-11-05
Piet Vos,Norrsken,MANAGING_DIRECTOR_OF,Piet Vos is managing director.,2025-07-01
Moira Kean,Kestrel,DIRECTOR_OF,Moira Kean is a director.,2024-01-10
Paul Reyes,Kestrel,DIRECTOR_OF,Paul Reyes is another director.,2025-01-10
Anna Falk,Ostby,OWNS,Anna Falk owns a part.,2024-01-10
Bo Holm,Ostby,OWNS,Bo Holm owns another part.,2025-01-10
Carl Dahl,Vessby,CEO_OF,Carl Dahl is CEO.,2024-01-10
Eva Dahl,Vessby,CEO_OF,Eva Dahl is CEO.,2025-01-10
"""


@pytest.fixture(scope="module")
def rag(shared_folder, tmp_path_factory) -> GraphRAG:
    folder = tmp_path_factory.mktemp("time")
    (folder / "notes").mkdir()
    for number, text in enumerate([*ENGLISH.values(), *STARTED.values()]):
        (folder / "notes" / f"{number}.md").write_text(f"# Note {number}\n\n{text}\n")
    created = PDF.replace("<</Root 1 0 R>>", "<</Root 1 0 R/Info 6 0 R>>").replace(
        "trailer", "6 0 obj <</CreationDate(D:20210403120000)>> endobj trailer"
    )
    (folder / "files").mkdir()
    (folder / "files" / "plain.pdf").write_text(created)
    (folder / "files" / "2020-05-06-named.pdf").write_text(created)
    (folder / "files" / "plain.docx").write_bytes(
        docx(paragraph("Nils Orm bought a boat in Valby."), created="2013-12-23T23:15:00Z")
    )
    (folder / "facts").mkdir()
    (folder / "facts" / "staff.facts.csv").write_text(STAFF)
    (folder / "facts" / "slots.facts.csv").write_text(SLOTS)
    return GraphRAG(index_once(shared_folder / "time", folder) / "index")


def held(rag: GraphRAG, day: str) -> set[str]:
    return set(rag.sql("SELECT subject FROM facts_as_of($day::DATE)", {"day": day})["subject"])


@pytest.mark.parametrize("name", ENGLISH)
def test_a_stated_end_is_no_start(rag, name):
    assert name in held(rag, "2024-06-01")
    assert name not in held(rag, "2025-01-01")


@pytest.mark.parametrize("name", STARTED)
def test_a_stated_start_is_no_end(rag, name):
    assert name not in held(rag, "2024-06-01")
    assert name in held(rag, "2025-01-01")


@pytest.mark.parametrize(
    ("question", "end"), [("Where is Alma Reyes assigned?", "2020-12-31"), ("Where does Olaf Berg live?", "2021-06")]
)
def test_an_answer_says_when_a_fact_ended(rag, question, end):
    assert end in rag.local(question).answer


def test_a_later_statement_ends_only_what_one_can_be_at_a_time(rag):
    ended = rag.sql("SELECT source FROM relationships WHERE superseded_by IS NOT NULL ORDER BY 1")["source"].to_list()
    assert ended == ["Carl Dahl", "Helen Marsh"]


def test_a_repeated_fact_holds_until_another_one(rag):
    prices = "SELECT start_date, valid_until::VARCHAR FROM covariates WHERE type = 'PRICE' ORDER BY 1"
    assert rag.sql(prices).rows() == [("2019", "2021-01-01"), ("2020", "2021-01-01"), ("2021", None)]


def test_the_day_of_creation_of_a_file_is_no_date_of_its_document(rag):
    dates = rag.sql("SELECT source, document_date::VARCHAR FROM documents WHERE batch = 'files' ORDER BY source").rows()
    assert dates == [
        ("files/2020-05-06-named.pdf", "2020-05-06"),
        ("files/plain.docx", None),
        ("files/plain.pdf", None),
    ]
