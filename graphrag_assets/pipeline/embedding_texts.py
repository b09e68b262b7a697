"""The texts that are embedded of a text unit, an entity and a report."""

from collections.abc import Collection, Sequence

from graphrag_assets.text.words import cut_text

ENTITY_TOKENS = 28
"""Of an entity's description, the first sentences within this number of tokens are embedded."""


def texts_of(kind: str, title: str, text: str, members: Collection[object] | None) -> Sequence[str]:
    """Return the texts whose vectors, with those of `members`, sum up to the vector of a row.

    Of a text unit its context, which is its title here, and its text. Of an entity two, see `entity_texts`. Half of a
    report is its title and summary, the other half the entities that it is about, its members. The report on a pair
    only repeats what is known of the two, so its vector is theirs.
    """
    match kind:
        case "text_unit":
            return [f"{title}\n{text}" if title else text]
        case "entity":
            return entity_texts(title, text)
    n_members = len(members or ())
    return [] if n_members == 2 else [f"{title}\n\n{text}"] * max(n_members, 1)


def entity_texts(title: str, description: str) -> Sequence[str]:
    """Return texts whose vectors' mean is an entity's: its title, and as in GraphRAG "title:description", shortened."""
    return title, f"{title}:{cut_text(description, ENTITY_TOKENS)}"
