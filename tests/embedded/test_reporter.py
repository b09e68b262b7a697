import re
from dataclasses import replace

from graphrag_assets.contracts.records import ReportMaterial, ReportRow
from graphrag_assets.embedded.reporter import write_reports

CABLE = (
    ReportRow("Entities", 0, ("Great Eastern",), "The Great Eastern was the largest ship afloat."),
    ReportRow("Entities", 1, ("James Anderson",), "James Anderson was a captain."),
    ReportRow("Relationships", 5, ("James Anderson", "Great Eastern"), "James Anderson commanded the Great Eastern."),
    ReportRow("Claims", 7, ("James Anderson",), "James Anderson commanded the Great Eastern."),
)
MATERIAL = ReportMaterial(size=2, n_text_units=9, leading=("Great Eastern", "James Anderson"), rows=CABLE, context="")


def test_summary_defines_the_central_entities_and_relates_them():
    rows = (*CABLE, ReportRow("Relationships", 6, ("Valentia", "Great Eastern"), "The Great Eastern left Valentia."))
    report = write_reports([ReportMaterial(3, 9, ("Great Eastern", "James Anderson", "Valentia"), rows, "")])[0]
    assert report.summary == (
        "The Great Eastern was the largest ship afloat. [Data: Entities (0)] "
        "James Anderson was a captain. [Data: Entities (1)] "
        "The Great Eastern left Valentia. [Data: Relationships (6)] "
        "James Anderson commanded the Great Eastern. [Data: Claims (7); Relationships (5)]"
    )


def test_no_sentence_of_a_report_begins_with_a_pronoun_that_refers_to_nothing():
    rows = (
        ReportRow("Entities", 0, ("Ada Bell",), "Ada Bell was a chemist. She died in Leeds. However, it rained."),
        ReportRow("Claims", 1, ("Ada Bell",), "He sold two shops in 1866."),
        ReportRow("Claims", 2, ("They Flew Alone",), "They Flew Alone is a film."),
    )
    report = write_reports([ReportMaterial(2, 1, ("Ada Bell", "They Flew Alone"), rows, "")])[0]
    text = " ".join(finding.explanation for finding in report.findings)
    assert "He sold" not in text
    assert "Ada Bell was a chemist. She died in Leeds. However, it rained. [Data: Entities (0)]" in text
    assert "They Flew Alone is a film. [Data: Claims (2)]" in text


def test_a_report_has_each_sentence_once_with_all_rows_that_carry_it_and_a_rating_by_text_units():
    report = write_reports([MATERIAL])[0]
    assert (report.title, report.rating) == ("Great Eastern and James Anderson", 5.0)  # 5 * log10(1 + 9)
    assert write_reports([replace(MATERIAL, n_text_units=1000)])[0].rating == 10
    text = " ".join(finding.explanation for finding in report.findings)
    assert text.count("James Anderson commanded the Great Eastern.") == 1
    assert "James Anderson commanded the Great Eastern. [Data: Claims (7); Relationships (5)]" in text
    cited = {(s, int(n)) for s, ns in re.findall(r"(\w+) \(([\d, ]+)\)", text) for n in ns.split(",")}
    assert cited == {(row.section, row.number) for row in CABLE}


def test_a_community_of_one_without_text_still_has_a_report():
    report = write_reports([ReportMaterial(1, 1, ("Sark",), (ReportRow("Entities", 3, ("Sark",), ""),), "")])[0]
    assert (report.title, report.summary, report.findings) == ("Sark", "Sark stands by itself.", [])


def test_five_sentences_make_five_findings_even_about_one_thing():
    rows = tuple(
        ReportRow("Claims", i, ("Ada",), f"Ada did thing number {word}.")
        for i, word in enumerate(["one", "two", "three", "four", "five"])
    )
    report = write_reports([ReportMaterial(3, 2, ("Ada",), rows, "")])[0]
    assert len(report.findings) == 5
    assert sum(finding.explanation.count("Ada did") for finding in report.findings) == 5
