"""Evidence for the type of a name: what it ends or begins with, and the words around it."""

from graphrag_assets.embedded.tagging import word_list

PERSON, ORGANIZATION, GEO, EVENT, CONCEPT, NAME = "PERSON", "ORGANIZATION", "GEO", "EVENT", "CONCEPT", "NAME"

ORG_ENDINGS = word_list("cue_words:organization endings")
GEO_ENDINGS = word_list("cue_words:place endings")
GEO_BEGINNINGS = word_list("cue_words:place beginnings")
EVENT_ENDINGS = word_list("cue_words:event endings")
# Heads that take "of": "Bank of England", "Battle of Hastings", "Ghost of Christmas Past".
OF_HEADS = {
    **dict.fromkeys(word_list("cue_words:heads of organizations"), ORGANIZATION),
    **dict.fromkeys(word_list("cue_words:heads of places"), GEO),
    **dict.fromkeys(word_list("cue_words:heads of events"), EVENT),
    **dict.fromkeys(word_list("cue_words:heads of persons"), PERSON),
}
PERSONAL_VERBS = word_list("cue_words:personal verbs")
OCCUPATIONS = word_list("generic_roles") - word_list("cue_words:bodies")
PLACE_PREPOSITIONS = word_list("cue_words:place prepositions")


def type_of_title(words: list[str]) -> tuple[str, int]:
    """Type and evidence for a title: usually a work, whose words do not indicate its type."""
    kind, evidence = type_by_form(words, False, False)
    return (kind, evidence) if evidence > 5 else (NAME, 0)


def type_by_form(words: list[str], has_initial: bool, article: bool) -> tuple[str, int]:
    """Type and strength of evidence (0 to 9) in the words of the name itself."""
    lowers = [word.lower().rstrip(".") for word in words]
    key = " ".join(lowers)
    if key in word_list("places") or " ".join(words).lower() in word_list("places"):
        return GEO, 6
    if "of" in lowers[1:-1]:
        head = lowers[lowers.index("of") - 1]
        if head in OF_HEADS:
            return OF_HEADS[head], 8
        if head in EVENT_ENDINGS:
            return EVENT, 8
        if head in ORG_ENDINGS:
            return ORGANIZATION, 8
        return NAME, 0
    if len(words) > 1:
        if "&" in words or lowers[-1] in ORG_ENDINGS:
            return ORGANIZATION, 8
        if lowers[-1] in EVENT_ENDINGS:
            return EVENT, 7
        if lowers[-1] in GEO_ENDINGS or lowers[0] in GEO_BEGINNINGS:
            return GEO, 7
        if article:
            return NAME, 0
        if lowers[0] in word_list("given_names") or has_initial or (lowers[-1] in ("jr", "sr")):
            return PERSON, 6
    elif lowers[0].startswith("christmas-") or lowers[0] in ("christmas", "easter"):
        return EVENT, 6
    elif words[0].isupper() and len(words[0]) > 1:
        return ORGANIZATION, 1
    elif lowers[0] in word_list("given_names"):
        return PERSON, 1
    return NAME, 0
