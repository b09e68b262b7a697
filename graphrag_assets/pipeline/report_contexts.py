"""What a community report is written from: all of the community's relationships, entities and claims.

Relationships come by combined degree, each led by its two entities and their claims. A context over the token
limit is shortened as in the paper (Edge et al. 2024, arXiv 2404.16130): sub-communities are replaced by their
reports, largest first. So contexts are built from the deepest level up. If that is not enough, each kind of row has a
share of the limit, and what one kind leaves passes on to the others.

Where descriptions are extracts, a model is shown the text units that name the community's entities instead, by the
summed degrees of these: it learns more from passages than from sentences that were cut out of them.
"""

from typing import NamedTuple

import polars as pl

from graphrag_assets.text.references import CHECKED_PATTERN
from graphrag_assets.text.words import count_tokens, cut_text

_SECTIONS = {
    "Reports": "id,title,content",
    "Entities": "id,entity,type,description,degree",
    "Claims": "id,subject,type,status,start_date,end_date,description",
    "Relationships": "id,source,target,type,description,combined_degree",
    "Sources": "id,text",
}
_ORDER = {section: place for place, section in enumerate(_SECTIONS)}
# Of the rows that are selected when they do not all fit; relative to those of the kinds that have rows.
_SHARES = {"Reports": 0.3, "Entities": 0.25, "Claims": 0.15, "Relationships": 0.3, "Sources": 0.7}
_MAX_SECTIONS = 4  # Sources have only Reports beside them
_HEADER_TOKENS = 24  # a section's heading, its column line and the blank line after it
_NOT_ONE_SPACE = r"\s{2,}|[^\S ]"  # white space to write as one space; a match for each space takes five times longer
_OF_ENTITIES = "title type description degree"
_OF_CLAIMS = "subject_id type status start_date end_date description"
_OF_RELATIONSHIPS = "source target type description combined_degree"
_OF_CONTEXT = ("community", "section", "number", "names", "text", "line", "tokens", "child")


def evidence(
    entities: pl.DataFrame, relationships: pl.DataFrame, claims: pl.DataFrame, encoding: str = "o200k_base"
) -> pl.DataFrame:
    """One line of context per entity, relationship and claim, with its tokens.

    Args:
        entities: id, human_readable_id, title, type, description, degree.
        relationships: id, human_readable_id, source, target, type, relations, description, combined_degree, source_id,
            target_id. Where a pair has several predicates, all are shown.
        claims: human_readable_id, subject_entity_id, subject_id, type, status, start_date, end_date, description,
            document_date.

    Returns:
        columns section, number, names (what it is about), text (what it says), line, tokens, source_id, target_id
        (both the entity itself for entities, the subject for claims), combined_degree (the degree for entities).
    """
    several = pl.col("relations").fill_null("") != ""
    relationships = relationships.with_columns(type=pl.when(several).then("relations").otherwise("type"))
    entities = entities.with_columns(source_id="id", target_id="id", combined_degree="degree")
    subject = pl.col("subject_entity_id")
    claims = claims.with_columns(source_id=subject, target_id=subject, combined_degree=pl.lit(0, pl.Int64))
    lines = pl.concat(
        [
            _lines("Entities", entities, _OF_ENTITIES, ["title"]),
            _lines("Claims", claims, _OF_CLAIMS, ["subject_id"]),
            _lines("Relationships", relationships, _OF_RELATIONSHIPS, ["source", "target"]),
        ]
    )
    return with_tokens(lines, encoding)


def with_tokens(lines: pl.DataFrame, encoding: str) -> pl.DataFrame:
    """`lines` with the tokens of each, line break included."""
    return lines.with_columns(tokens=pl.Series(count_tokens(lines["line"], encoding), dtype=pl.Int64) + 1)


def _lines(section: str, rows: pl.DataFrame, columns: str, names: list[str]) -> pl.DataFrame:
    return rows.select(
        "source_id",
        "target_id",
        "combined_degree",
        section=pl.lit(section),
        number=pl.col("human_readable_id").cast(pl.Int64),
        names=pl.concat_list(names),
        text="description",
        line=with_date(rows, csv_line("human_readable_id", *columns.split())),
    )


def csv_line(*columns: str) -> pl.Expr:
    """Return the columns as one comma-separated line; a text with a comma, quote or line break is quoted."""
    parts = []
    for name in columns:
        text = pl.col(name).cast(pl.String).fill_null("").str.replace_all(_NOT_ONE_SPACE, " ")
        quoted = pl.concat_str(pl.lit('"'), text.str.replace_all('"', '""'), pl.lit('"'))
        parts.append(pl.when(text.str.contains('[",]')).then(quoted).otherwise(text))
    return pl.concat_str(parts, separator=",")


def with_date(rows: pl.DataFrame, line: pl.Expr) -> pl.Expr:
    """Return the line, and the date of the row's document behind it if there is one."""
    if "document_date" not in rows.columns:
        return line
    return pl.concat_str(line, pl.col("document_date").cast(pl.String), separator=",", ignore_nulls=True)


def source_lines(text_units: pl.DataFrame, encoding: str = "o200k_base") -> pl.DataFrame:
    """One line of context per text unit (id, human_readable_id, text, document_date).

    Returns:
        text_unit_id, number, line, tokens.
    """
    line = with_date(text_units, csv_line("human_readable_id", "text"))
    lines = text_units.select(text_unit_id="id", number=pl.col("human_readable_id").cast(pl.Int64), line=line)
    return with_tokens(lines, encoding)


def source_rows(
    members: pl.DataFrame, sub_members: pl.DataFrame, entities: pl.DataFrame, lines: pl.DataFrame
) -> pl.DataFrame:
    """As `local_rows`, from `source_lines`: child is the one that has all entities that the text unit names."""
    named = entities.select("degree", entity_id="id", text_unit_id="text_unit_ids").explode("text_unit_id").drop_nulls()
    placed = members.join(named, on="entity_id").join(sub_members, on="entity_id", how="left")
    units = placed.group_by("community", "text_unit_id").agg(
        pl.col("degree").sum(), child=pl.when(pl.col("child").n_unique() == 1).then(pl.col("child").first())
    )
    ordered = units.join(lines, on="text_unit_id").sort("community", pl.col("degree").neg(), "number")
    columns = ("community", pl.lit("Sources").alias("section"), "number", "line", "tokens", "child")
    return ordered.select(*columns, place=pl.int_range(pl.len(), dtype=pl.Int64))


class Contexts(NamedTuple):
    """`contexts`: community, context. `rows`: what each is made of, in its order."""

    contexts: pl.DataFrame
    rows: pl.DataFrame


def fitted_contexts(
    rows: pl.DataFrame, sub_reports: pl.DataFrame, max_tokens: int, encoding: str = "o200k_base"
) -> Contexts:
    """Return the contexts of the communities that have `rows`, shortened to `max_tokens` each.

    If a community's rows and reports exceed it, each kind gets the rows that fit its share; a row that does not fit is
    skipped, and a kind whose rows are all too long has its first one cut. The rest of the limit goes to the rows that
    were cut, then to the other rows in their order, claims last.

    Args:
        rows: as of `local_rows` or `source_rows`.
        sub_reports: community, title, summary, full_content of the sub-communities' reports.
    """
    budget = max_tokens - _MAX_SECTIONS * _HEADER_TOKENS
    totals = rows.group_by("community").agg(pl.col("tokens").sum()).filter(pl.col("tokens") > budget)
    needed = rows.join(totals, on="community", how="semi").select("child").unique()
    reports = sub_reports.select(
        child=pl.col("community").cast(pl.Int64),
        names=pl.concat_list("title"),
        text=pl.col("summary").str.replace_all(CHECKED_PATTERN, ""),
        line=csv_line("community", "title", "full_content"),
    )
    reports = with_tokens(reports.join(needed, on="child", how="semi"), encoding)
    over = totals["community"].sort()
    substituted = [_substitute(rows.filter(pl.col("community") == number), reports, budget) for number in over]
    substituted = [
        part if part["tokens"].sum() <= budget else _selected(part, budget, encoding) for part in substituted
    ]
    rows = pl.concat([rows.join(totals, on="community", how="anti"), *substituted], how="diagonal")
    fitted = rows.sort("community", "place")
    return Contexts(_render(fitted), fitted)


def local_rows(members: pl.DataFrame, sub_members: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of `evidence` inside each community, in the order of its context.

    Args:
        members: community, entity_id.
        sub_members: sub-community (column child) and entity_id.

    Returns:
        community, child (the sub-community that holds it, if one does), place (the order), and the columns of `lines`.
    """
    ends = members.join(sub_members, on="entity_id", how="left").select("entity_id", "community", "child")
    inside = (
        lines.join(ends.rename({"entity_id": "source_id"}), on="source_id")
        .join(ends.select("community", target_id="entity_id", other_child="child"), on=["target_id", "community"])
        .with_columns(child=pl.when(pl.col("child") == pl.col("other_child")).then("child"))
    )
    related = inside.filter(pl.col("section") == "Relationships").with_columns(
        rank=pl.struct(pl.col("combined_degree").neg(), "number").rank("ordinal").over("community").cast(pl.Int64)
    )
    first = (
        pl.concat([related.select("community", "rank", entity=f"{end}_id") for end in ("source", "target")])
        .group_by("community", "entity")
        .agg(pl.col("rank").min())
    )
    # Members without a relationship inside come last, the best connected first.
    others = inside.filter(pl.col("section") != "Relationships").join(
        first, left_on=["community", "source_id"], right_on=["community", "entity"], how="left"
    )
    unrelated = pl.lit(2**40, pl.Int64)
    ordered = pl.concat([others.with_columns(pl.col("rank").fill_null(unrelated)), related], how="diagonal")
    kind = pl.col("section").replace_strict(_ORDER, return_dtype=pl.Int64)
    ordered = ordered.sort("community", "rank", kind, pl.col("combined_degree").neg(), "number")
    return ordered.select(*_OF_CONTEXT, place=pl.int_range(pl.len(), dtype=pl.Int64))


def _substitute(rows: pl.DataFrame, reports: pl.DataFrame, budget: int) -> pl.DataFrame:
    """One community's rows with its largest children's rows replaced by their reports until they fit."""
    children = (
        rows.filter(pl.col("child").is_not_null())
        .group_by("child")
        .agg(pl.col("tokens").sum().alias("own"))
        .join(reports, on="child")
        .filter(pl.col("tokens") < pl.col("own"))  # a report longer than the rows it replaces saves nothing
        .sort(pl.col("own").neg(), "child")
    )
    total = int(rows["tokens"].sum())
    saved_before = (pl.col("own") - pl.col("tokens")).cum_sum().shift(1, fill_value=0)
    replaced = children.filter(total - saved_before > budget)
    stand_ins = replaced.with_columns(
        community=pl.lit(rows["community"][0]),
        section=pl.lit("Reports"),
        number="child",
        place=pl.int_range(pl.len(), dtype=pl.Int64) - pl.len().cast(pl.Int64),
    )
    rest = rows.join(replaced.select("child"), on="child", how="anti")
    return pl.concat([stand_ins.select(rows.columns).cast(rows.schema), rest])


def _selected(rows: pl.DataFrame, budget: int, encoding: str) -> pl.DataFrame:
    """Of one community's rows, those that fit by shares; see `fitted_contexts`."""
    rows = rows.sort("place")
    kinds, lines, costs = rows["section"].to_list(), rows["line"].to_list(), rows["tokens"].to_list()
    shares = {kind: share for kind, share in _SHARES.items() if kind in kinds}
    selected: dict[int, int] = {}  # place: tokens
    cut: dict[int, str] = {}
    for kind, share in shares.items():
        room = int(share / sum(shares.values()) * budget)
        places = [place for place, of_row in enumerate(kinds) if of_row == kind]
        within = _fitting(places, costs, room)
        if not within and (line := _cut_line(lines[places[0]], room - 1, encoding)):
            cut[places[0]] = line
            within = {places[0]: count_tokens([line], encoding)[0] + 1}
        selected |= within
    for place, line in cut.items():
        if sum(selected.values()) - selected[place] + costs[place] <= budget:
            selected[place] = costs[place]
        else:
            lines[place], costs[place] = line, selected[place]
    rest = sorted((place for place in range(len(kinds)) if place not in selected), key=lambda p: kinds[p] == "Claims")
    selected |= _fitting(rest, costs, budget - sum(selected.values()))
    shortened = {"line": pl.Series(lines, dtype=pl.String), "tokens": pl.Series(costs, dtype=pl.Int64)}
    return rows.with_columns(**shortened)[sorted(selected)]


def _fitting(places: list[int], costs: list[int], room: int) -> dict[int, int]:
    """Return the places whose costs fit `room` in turn, with their costs; one that does not fit is skipped."""
    selected: dict[int, int] = {}
    for place in places:
        if costs[place] <= room:
            selected[place] = costs[place]
            room -= costs[place]
    return selected


def _cut_line(line: str, max_tokens: int, encoding: str) -> str:
    """Return a line cut at a sentence; an open quotation is closed."""
    cut = cut_text(line, max_tokens - 1, encoding)
    return cut + '"' if cut.count('"') % 2 else cut


def _render(rows: pl.DataFrame) -> pl.DataFrame:
    section = pl.col("section")
    # Nothing else ends a line so: a text with a comma is quoted.
    dated = pl.col("line").str.contains(r",\d{4}-\d\d-\d\d$").any().over("community", "section")
    more = pl.when(dated).then(pl.lit(",document_date")).otherwise(pl.lit(""))
    heading = pl.format("-----{}-----\n{}{}\n", section, section.replace_strict(_SECTIONS), "more")
    return (
        rows.with_columns(kind=section.replace_strict(_ORDER, return_dtype=pl.Int64), more=more)
        .sort("community", "kind", "place")
        .group_by("community", "kind", "section", "more", maintain_order=True)
        .agg(pl.col("line").str.join("\n"))
        .with_columns(text=heading + pl.col("line"))
        .group_by("community", maintain_order=True)
        .agg(context=pl.col("text").str.join("\n\n"))
    )
