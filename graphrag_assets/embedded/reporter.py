"""Community reports of the embedded default: the most central sentences, arranged by topic and cited.

Nothing is invented: each sentence of a report is a description or claim of the community, followed by the
entities, relationships, claims or sub-reports it was taken from.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphrag_assets.contracts.records import Finding, ReportMaterial, ReportRecord, ReportRow
from graphrag_assets.embedded.centrality import centrality
from graphrag_assets.embedded.wording import begins_with_anaphor
from graphrag_assets.text.references import reference
from graphrag_assets.text.words import sentences

REPORTER = "embedded/extractive-4"
MIN_FINDINGS = 5
MAX_FINDINGS = 10
SENTENCES_PER_FINDING = 3
_MAX_CITED = 5  # rows of a table, in one reference
_SAME = 0.9
"""A statement that has this share of the words of another one, or of which the other one has it, repeats it."""
_CENTRAL = 3
_RELATED = 2
_CONNECTED = 5
_DATE = re.compile(r"\(\d{4}-\d\d-\d\d\)\s*")
_LEAD = 12  # characters: room for an article or an honorific before the name


@dataclass
class _Statement:
    text: str
    score: float = 0.0
    describes: str = ""  # the entity whose description it opens
    names: set[str] = field(default_factory=set)
    cited: set[tuple[str, int]] = field(default_factory=set)  # sections and numbers of rows

    @property
    def words(self) -> set[str]:
        return set(re.findall(r"\w+", self.text.casefold()))

    def with_citation(self) -> str:
        return f"{self.text} {reference(sorted(self.cited), _MAX_CITED)}"


def write_reports(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
    """One report per material, in order, with its sentences ranked by centrality within their community."""
    statements = [_statements(material.rows) for material in materials]
    texts = [(place, statement.text) for place, of_material in enumerate(statements) for statement in of_material]
    scores = centrality([text for _, text in texts], [place for place, _ in texts]).tolist()
    for statement, score in zip((s for of_material in statements for s in of_material), scores, strict=True):
        statement.score = score
    return [_write(material, of_material) for material, of_material in zip(materials, statements, strict=True)]


def _write(material: ReportMaterial, statements: list[_Statement]) -> ReportRecord:
    central = sorted(statements, key=lambda s: (-s.score, s.text))
    n = material.n_text_units
    rating = min(10.0, round(5 * math.log10(1 + n), 1))
    spoken = "1 text unit of the corpus speaks" if n == 1 else f"{n} text units of the corpus speak"
    return ReportRecord(
        title=_enumerate(_central_names(material)) or "Unnamed community",
        summary=_summary(material, central),
        findings=_findings(material, central),
        rating=rating,
        rating_explanation=f"Rated {rating} of 10 because {spoken} of its members.",
    )


def _central_names(material: ReportMaterial) -> list[str]:
    """Return the three best connected members, without names that are part of another ("Field" of "Cyrus Field")."""
    leading = material.leading[: 2 * _CENTRAL]
    parts = {name for name in leading for other in leading if name != other and f" {name} " in f" {other} "}
    return [name for name in leading if name not in parts][:_CENTRAL]


def _summary(material: ReportMaterial, central: list[_Statement]) -> str:
    """Return the descriptions of the central entities, their relationships, and their other connections.

    `central`: the statements, the most central first. None is chosen that contains, or is contained in, a chosen one.
    """
    names = _central_names(material)
    chosen: list[_Statement] = []
    for name in names:
        about = [s for s in central if name in s.names and not _repeats(s, chosen)]
        if about:
            chosen.append(min(about, key=lambda s: (s.describes != name, name not in s.text[: len(name) + _LEAD])))
    related = [
        s
        for s in central
        if any(section == "Relationships" for section, _ in s.cited) and len(s.names.intersection(names)) > 1
    ]
    chosen = _extended(chosen, related, len(chosen) + _RELATED) or _extended([], central, _CENTRAL)
    parts = [*(s.with_citation() for s in chosen), _connected(material, names)]
    stands = "stands by itself" if len(names) == 1 else "stand by themselves"
    return " ".join(filter(None, parts)) or f"{_enumerate(names)} {stands}."


def _extended(chosen: Sequence[_Statement], further: Iterable[_Statement], most: int) -> list[_Statement]:
    """`chosen` and `further` statements, up to `most` in all, none repeating another."""
    extended = list(chosen)
    for statement in further:
        if len(extended) < most and not _repeats(statement, extended):
            extended.append(statement)
    return extended


def _repeats(statement: _Statement, chosen: Iterable[_Statement]) -> bool:
    """Whether a statement says what a chosen one does, in the same words or most of them."""
    return any(_overlap(statement.words, other.words) >= _SAME for other in chosen)


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / (min(len(one), len(other)) or 1)


def _connected(material: ReportMaterial, names: Sequence[str]) -> str:
    """Return a sentence with the other entities that the first of `names` is related to; empty if there are none."""
    links: dict[str, set[int]] = defaultdict(set)
    for row in material.rows:
        if row.section == "Relationships" and names and names[0] in row.names:
            for other in row.names:
                if other not in names:
                    links[other].add(row.number)
    others = ([name for name in material.leading if name in links] or list(links))[:_CONNECTED]
    if not others:
        return ""
    cited = {("Relationships", number) for name in others for number in links[name]}
    return _Statement(f"{names[0]} is also connected with {_enumerate(others)}.", cited=cited).with_citation()


def _statements(rows: Iterable[ReportRow]) -> list[_Statement]:
    """One statement per distinct sentence, citing every row that carries it.

    A sentence that refers to the one before it ("He …") is joined to that; without one it is omitted.
    """
    statements: dict[str, _Statement] = {}
    for row in rows:
        for place, text in enumerate(_extracts(row)):
            statement = statements.setdefault(text, _Statement(text))
            statement.names.update(row.names)
            statement.cited.add((row.section, row.number))
            if place == 0 and row.section == "Entities":
                statement.describes = row.names[0]
    return list(statements.values())


def _extracts(row: ReportRow) -> list[str]:
    extracts: list[str] = []
    for span in sentences(row.text):
        text = _DATE.sub("", row.text[span.start : span.end]).strip()  # the date of a description follows it
        if not begins_with_anaphor(text) or text.startswith(row.names):
            extracts += [text] if text else []
        elif extracts:
            extracts[-1] += f" {text}"
    return extracts


def _findings(material: ReportMaterial, central: list[_Statement]) -> list[Finding]:
    """At least five findings where there are five sentences: the fewer topics, the shorter the findings."""
    for sentences_each in range(SENTENCES_PER_FINDING, 0, -1):
        findings = _topics(material, central, sentences_each)
        if len(findings) >= MIN_FINDINGS:
            break
    return findings


def _topics(material: ReportMaterial, central: list[_Statement], sentences_each: int) -> list[Finding]:
    """Return a finding per topic, the best connected topics first, in rounds while sentences last; each is used
    once.
    """
    mentions = Counter(name for statement in central for name in statement.names)
    place = {name: i for i, name in enumerate(material.leading)}
    topics = sorted(mentions, key=lambda name: (place.get(name, len(place)), -mentions[name], name))
    unused = {statement.text: statement for statement in central}
    findings: list[Finding] = []
    while unused and len(findings) < MAX_FINDINGS:
        before = len(findings)
        for topic in topics:
            about = [s for s in unused.values() if topic in s.names][:sentences_each]
            if about and len(findings) < MAX_FINDINGS:
                findings.append(_finding(topic, about))
                for statement in about:
                    del unused[statement.text]
        if len(findings) == before or sentences_each > 1:
            break
    return findings


def _finding(topic: str, about: list[_Statement]) -> Finding:
    others = Counter(name for statement in about for name in statement.names if name != topic)
    linked = [name for name, _ in sorted(others.items(), key=lambda item: (-item[1], item[0]))[:3]]
    headline = f"{topic}, linked with {_enumerate(linked)}" if linked else topic
    return Finding(headline, " ".join(statement.with_citation() for statement in about))


def _enumerate(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
