"""Contradicting claims of what an answer was written from; the rule is that of the macro `contradictions`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_assets.query.citations import Citation
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader

MIN_SCORE = 0.3
"""Of the pairs that an answer names."""


@dataclass(frozen=True, slots=True)
class ContradictingClaim:
    """A claim with its source, `documents.text[start_char:end_char]`.

    `number`: its human_readable_id. `later`: the other one is known to be earlier, by the dates of the documents, else
    of the claims. `cited`: the answer cites this claim or its passage.
    """

    number: int
    description: str
    status: str
    object: str | None
    start_date: str | None
    document_id: str | None
    document: str | None
    source: str | None
    start_char: int | None
    end_char: int | None
    document_date: str | None
    later: bool
    cited: bool

    def __str__(self) -> str:
        """The claim and its source in one line."""
        dated = f", {self.document_date}" if self.document_date else ""
        later = ", the later one" if self.later else ""
        place = f"{self.document}{dated}, characters {self.start_char}-{self.end_char}{later}"
        return f"{self.status}: {' '.join(self.description.split())} ({place})"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two claims on the same subject and type, alike but for what `differs`: status, number, date or object.

    `score`: 0 to 1, how alike they are otherwise.
    """

    score: float
    subject: str
    type: str
    differs: str
    claims: tuple[ContradictingClaim, ContradictingClaim]

    @property
    def cited(self) -> bool:
        """Whether the answer cites one of the two."""
        return any(claim.cited for claim in self.claims)

    def __str__(self) -> str:
        """Both claims in one line."""
        return f"{self.subject}: different {self.differs}: {self.claims[0]} / {self.claims[1]}"


def contradictions_of(
    reader: Reader, read: Mapping[str, Collection[int]], citations: Sequence[Citation], scope: Scope = EVERYTHING
) -> list[Contradiction]:
    """The pairs of contradicting claims, at least one of which the answerer has read or the answer cites.

    Args:
        read: the numbers of the rows in the context by table. A claim is read with its text unit, too.
        scope: claims of text units outside it are left out.

    Empty for a publication of an older version, which has no pairs.
    """
    if not reader.has_contradictions:
        return []
    numbers = reader.numbers(
        """
        WITH units AS (
            SELECT unnest($units::INT[]) AS number
            UNION SELECT human_readable_id FROM text_units WHERE id IN (SELECT unnest($cited::VARCHAR[]))
        ), compared AS (
            SELECT human_readable_id AS claim, text_unit_number FROM covariates WHERE human_readable_id IN (
                SELECT unnest([a, b]) FROM search.contradicting_claims
            )
        )
        SELECT claim FROM compared WHERE claim IN (SELECT unnest($claims::INT[])) OR text_unit_number IN (FROM units)
        """,
        {
            "units": sorted(read.get("Sources", ())),
            "claims": sorted(read.get("Claims", ())),
            "cited": [citation.text_unit_id for citation in citations if citation.text_unit_id],
        },
    )
    if not numbers:
        return []
    query = "FROM contradictions(claims := $claims::INT[], min_score := $score)"
    rows = reader.rows(query, {"claims": numbers, "score": MIN_SCORE}).to_dicts()
    allowed = scope.allowed_text_units(row[side]["text_unit_number"] for row in rows for side in ("one", "other"))
    return [
        Contradiction(
            row["score"],
            row["subject"],
            row["type"],
            row["differs"],
            (_claim(row["one"], False, citations), _claim(row["other"], row["other_is_later"], citations)),
        )
        for row in rows
        if {row["one"]["text_unit_number"], row["other"]["text_unit_number"]} <= allowed
    ]


def _claim(row: Mapping[str, Any], later: bool, citations: Sequence[Citation]) -> ContradictingClaim:
    start, end = row["start_char"], row["end_char"]
    cited = any(
        any((cited.table, cited.number) == ("Claims", row["human_readable_id"]) for cited in citation.rows)
        or (
            citation.document_id == row["document_id"]
            and start is not None
            and citation.start_char is not None
            and citation.end_char is not None
            and citation.start_char < end
            and start < citation.end_char
        )
        for citation in citations
    )
    return ContradictingClaim(
        number=row["human_readable_id"],
        description=row["description"] or "",
        status=row["status"],
        object=row["object"],
        start_date=row["start_date"],
        document_id=row["document_id"],
        document=row["document"],
        source=row["source"],
        start_char=start,
        end_char=end,
        document_date=row["document_date"] and str(row["document_date"]),
        later=later,
        cited=cited,
    )
