"""How questions are worded in the languages that the embedded default answers in: English, German, French, Spanish,
Russian.

Patterns of all languages apply together where no word of one means something else in another; a word that does is
left out, or depends on the language.
"""

import re
from collections.abc import Mapping

_I = re.IGNORECASE


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), _I)


KINDS: Mapping[str, re.Pattern[str]] = {
    "date": _any(
        r"\b(?:when|wann|quand|cuándo|когда)\b",
        r"\b(?:what|which) (?:\w+ )?(?:day|date|year|month)\b",
        r"\bin welchem (?:jahr|monat)\b|\ban welchem tag\b|\bquel(?:le)? (?:jour|date|année|mois)\b",
        r"\bqué (?:día|fecha|año|mes)\b|\bв каком (?:году|месяце)\b|\bкакого числа\b",
    ),
    "number": _any(
        r"\bhow (?:much|many|long|far|deep|heavy|fast|large|big|old|wide|high|tall|often)\b",
        r"\b(?:cost|price|amount|number|percentage|weight|length|height|depth|width|speed|size|age|distance"
        r"|duration|temperature|pressure|value)\b",
        r"\bwie (?:viele?|lange?|weit|tief|schwer|schnell|groß|alt|breit|hoch|oft|teuer)\b|\bcombien\b",
        r"\bcuánt[oa]s?\b|\bсколько\b",
    ),
    "name": _any(
        r"\bwho(?:m|se)?\b|\bwhich\b|\bwhat (?:person|people|company|organi[sz]ation|firm)\b",
        r"\b(?:wer|wen|wem|wessen|welche[rsmn]?|qui|quel(?:le)?s?|quién(?:es)?|cuál(?:es)?)\b",
        r"\b(?:кто|кого|кому|кем|чь[яёи]|какой|какая|какие)\b",
    ),
    "place": _any(r"\b(?:where|wo|wohin|woher|où|d'où|dónde|adónde|где|куда|откуда)\b"),
    "cause": _any(
        r"\b(?:why|reasons?|causes?|caused)\b|\b(?:warum|weshalb|wieso|weswegen|gr[uü]nde?|ursachen?)\b",
        r"\bpourquoi\b|\bpor qué\b|\bмотив\w*|\b(?:почему|зачем|причин\w*)\b",
    ),
    "lesson": _any(r"\blessons?\b|\blearn(?:s|ed|t)?\b"),
    "trouble": _any(
        r"\b(?:problems?|troubles?|difficult(?:y|ies)|issues?|challenges?|obstacles?|go(?:es)? wrong|went wrong)\b",
        r"\b(?:probleme?n?|schwierigkeit(?:en)?|problèmes?|difficultés?|problemas?|dificultad(?:es)?)\b",
        r"\b(?:проблем\w*|трудност\w*)\b",
    ),
}
"""How a question is worded that asks for an answer of this kind."""

GENERIC: Mapping[str, str] = {
    "en": """
main major key chief overall general important central theme topic subject summary summarize summarize describe
description tell explain discuss information data dataset corpus document text story book collection content cover
question answer name list give happen kind sort type way thing fact overview compare comparison contrast differ
difference different similarity biggest largest greatest worst best know please
""",
    "de": """
thema themen wichtig wichtigste hauptthema zusammenfassung überblick dokument dokumente text texte sammlung buch
geschichte inhalt handeln handelt geben erklären beschreiben größte vergleiche unterschied
""",
    "fr": """
thème thèmes sujet sujets principal principaux important résumé aperçu document documents texte textes collection livre
histoire contenu donner expliquer décrire comparer différence
""",
    "es": """
tema temas asunto asuntos principal principales importante resumen documento documentos texto textos colección libro
historia contenido dar explicar describir comparar diferencia
""",
    "ru": """
тема темы главный главные основной основные важный обзор документ документы текст тексты книга содержание рассказать
объяснить описать сравнить разница
""",
}
"""Words of a question that describe the form of the answer, not its subject."""

IMPLIED: Mapping[str, frozenset[str]] = {
    "date": frozenset(["happen", "occur", "date", "year", "day", "month"]),
    "number": frozenset(["number", "amount"]),
    "place": frozenset(["located", "situated", "place", "location", "lie", "lies"]),
    "cause": frozenset(["reason", "reasons", "cause", "causes", "caused", "grund", "gründe", "причина", "причины"]),
    "lesson": frozenset(["lesson", "lessons", "learn", "learns", "learned", "learnt"]),
    "trouble": frozenset(
        """
        problem problems trouble troubles issue issues difficulty difficulties challenge challenges obstacle obstacles
        wrong went probleme schwierigkeiten problème problèmes difficultés problema problemas dificultades
        проблема проблемы трудности
        """.split()  # noqa: SIM905
    ),
}
"""Words of a question that only repeat the kind of answer wanted: texts that answer rarely contain them."""

CAUSE = _any(
    r"\b(?:because|since|so that|so \w+ that|therefore|thus|hence|owing to|due to|thanks to|as a result"
    r"|for this reason|(?:caus|result|blam|ruin|damag|destroy|prevent)\w*|reasons?|fail\w*|faults?|faulty|defects?"
    r"|mistakes?|badly|too \w+)\b",
    r"\b(?:weil|wegen|deshalb|daher|dadurch|aufgrund|infolge)\b|\bparce qu|\bà cause d|\ben raison d|\bgrâce à\b",
    r"\b(?:porque|debido a|a causa de|por eso|gracias a)\b|\b(?:потому|так как|из-за|поэтому|вследствие)\b",
)
LESSON = re.compile(
    r"\b(?:lessons?|learn(?:ed|t)?|taught|morals?|knowledge|experience|inquiry|conclu\w+|recommend\w*|advised?"
    r"|(?:show|shown|showed|proved?|found|known|discovered) that|understood|must(?: not)?|should(?: not)?)\b|^do not\b",
    _I,
)
TROUBLE = _any(
    r"\b(?:problem\w*|trouble\w*|difficult\w*|fail\w*|fault\w*|defect\w*|damag\w*|destroy\w*|ruin\w*|mistake\w*|error\w*"
    r"|broke|broken|crack\w*|lost|loss(?:es)?|delay\w*|late|wrong\w*|refus\w*|impossible|unable|danger\w*|risk\w*"
    r"|threat\w*|accident\w*|disaster\w*|complain\w*|disput\w*|defeat\w*|suffer\w*)\b",
    r"\b(?:problem\w*|schwierig\w*|fehler\w*|schaden|schäden|beschädig\w*|verlust\w*|verlor\w*|gefahr\w*|beklag\w*)\b",
    r"\b(?:problèm\w*|difficult\w*|panne\w*|dégât\w*|détrui\w*|perdu\w*|retard\w*|dang\w*|plaign\w*)\b",
    r"\b(?:problema\w*|fall[oó]\w*|daño\w*|destru\w*|perd\w*|retras\w*|peligr\w*|quej\w*)\b",
    r"\b(?:проблем\w*|ошиб\w*|авари\w*|поврежд\w*|уничтож\w*|потер\w*|опасн\w*|жалов\w*|неисправ\w*)\b",
)

MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
    r"|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    r"|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)"
)
NUMBER_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half dozen once twice
zwei drei vier fünf sechs sieben acht neun zehn zwölf zwanzig hundert tausend deux trois quatre cinq sept huit neuf dix
douze vingt cent mille dos tres cuatro cinco seis siete ocho nueve diez doce veinte ciento mil
два две три четыре пять шесть семь восемь девять десять двенадцать двадцать сто тысяч тысяча
""".split()  # noqa: SIM905

_ARTICLE = r"(?:(?:an?|the|der|die|das|den|dem|le|la|les|el|los|las) )?"
_OPENINGS = (
    r"(?:who|what)(?: exactly)? (?:is|was|are|were)",
    r"what (?:is|do we|do you)(?: know| known)? about|what (?:can|could) you (?:tell|say)(?: me| us)? about",
    r"tell (?:me|us)(?: everything| more| all)? about|describe|introduce|summari[sz]e|sum up",
    r"(?:(?:give|write|provide|show)(?: me| us)? )?(?:an? )?(?:short |brief |quick )?"
    r"(?:overview|summary|description|portrait|profile|sketch) (?:of|about|on)",
    r"(?:wer|was) (?:ist|war|sind|waren)|was weißt du über|beschreibe",
    r"(?:erzähle?|berichte)(?: mir| uns)? (?:von|über)|(?:(?:gib|gib mir) )?(?:einen )?überblick über",
    r"(?:qui|qu['’]est-ce que?) (?:est|était|fut|sont|étaient)|qu['’]est-ce que|décri(?:s|vez)|présente[zr]?",
    r"parle[zr]?-(?:moi|nous) (?:de|du)",
    r"(?:quién|quiénes|qué) (?:es|era|fue|son|eran|fueron)|háblame de",
    r"(?:кто|что) (?:такой|такая|такое|такие)|расскажи(?:те)? (?:о|об|про)",
)
ABOUT = re.compile(
    rf"^\W*(?:please )?(?:{'|'.join(_OPENINGS)}) {_ARTICLE}(.+?)\W*$"
    rf"|^what (?:part|role) (?:did|does|do) {_ARTICLE}(.+?) play\b",
    _I,
)
"""A question that asks only who or what something is, or for an overview of it; a group holds what it asks about."""

DANGLING: Mapping[str, re.Pattern[str]] = {
    language: re.compile(rf"\W*(?:{words})\b", _I)
    for language, words in {
        "en": r"(?:(?:but|and|so|then|yet|or|nor) )?(?:it|its|he|his|him|she|her|hers|they|their|them|this|that|these"
        r"|those|such|both|neither|another|there(?:fore|after|upon)|the (?:same|others?|latter|former|first|second"
        r"|third)|in this (?:way|case)|at (?:that|this)|for (?:this|that)|instead)"
        r"|(?:but|and|so|then|yet|nor|however|thus|hence|also|besides|moreover|furthermore|nevertheless|nonetheless"
        r"|meanwhile|otherwise|consequently|accordingly|afterwards?|likewise|similarly|still|as a result"
        r"|on the other hand|in addition|by contrast)",
        "de": r"(?:(?:aber|und|doch|denn) )?(?:er|sie|es|ihr|ihre[mnrs]?|ihn|ihm|sein|seine[mnrs]?|dies|diese[mnrs]?"
        r"|jene[mnrs]?|beide|dort|dabei|dazu|damit|daraus|darauf|darüber|davon|dafür|dagegen)"
        r"|aber|und|doch|denn|jedoch|dennoch|trotzdem|deshalb|daher|danach|dann|außerdem|zudem|auch|allerdings",
        "fr": r"(?:(?:mais|et|or) )?(?:il|elle|ils|elles|ce|c['’]|cet|cette|ces|cela|ça|celui|celle|ceux|celles|son|sa"
        r"|ses|leurs?|lui)|mais|et|or|donc|puis|ensuite|cependant|pourtant|toutefois|ainsi|alors|enfin|de plus"
        r"|par conséquent|néanmoins",
        "es": r"(?:(?:pero|y) )?(?:él|ella|ellos|ellas|ello|est[aeo]s?|es[aeo]s|es[ao]|aquel(?:l[ao]s?)?|su|sus|ambos)"
        r"|pero|y|e|luego|después|entonces|también|además|sin embargo|no obstante|por eso|por lo tanto|así",
        "ru": r"(?:(?:но|и|а) )?(?:он|она|оно|они|его|её|ее|их|ему|ей|им|это[тм]?|эта|эти|того|тот|та|те|оба)"
        r"|но|и|а|однако|затем|потом|поэтому|также|тоже|тогда|кроме того|тем не менее",
    }.items()
}
"""Beginnings of sentences that refer to an earlier sentence: pronouns and connectives, by language."""
