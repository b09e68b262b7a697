"""A synthetic collection of news articles whose headlines no question names, with gold passages.

Every name is invented and drawn from a seed. A few companies and people fill most of the articles, as in real news, so
that an entity says little about which article answers a question. Questions ask for two articles each: of one company
in two events, or of two companies in one kind of event; none repeats a headline.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

_ONSETS, _CODAS, _FIRST, _LAST, _TRADES, _THINGS, _PARTS, _GRIEVANCES, _OFFENSES, _DAYS = (
    line.split(",")
    for line in """\
Bar,Cal,Den,Dor,Fen,Gal,Hal,Har,Ives,Kel,Lan,Lor,Mar,Mer,Nor,Oak,Pel,Quin,Ren,Sal,Tor,Ul,Ver,Wal,Wex,Yar
bury,by,combe,den,field,ford,gate,ham,ington,ley,low,mere,mont,mouth,ridge,stead,ton,vale,wick,worth
Ada,Amir,Boris,Carla,Dmitri,Elena,Farid,Grace,Hugo,Ines,Jonas,Kofi,Lena,Marta,Nadia,Omar,Petra,Rosa,Tomas,Vera
Abara,Brandt,Castell,Dahl,Eriksen,Faulk,Grieve,Hoxha,Imber,Jurado,Kessler,Lindqvist,Moreau,Nystrom,Okafor
Foods,Motors,Energy,Robotics,Freight,Textiles,Pharma,Airlines,Bank,Steel,Media,Software
scooters,heaters,car seats,batteries,drones,tents,pumps,cameras,bicycles,ovens,lamps,tablets
wiring,brakes,cooling systems,billing systems,valves,data centers,sensors,bearings,hinges
night shifts,pension cuts,overtime pay,unsafe machines,canceled leave,outsourcing
late filings,price fixing,polluting a river,misleading labels,leaking customer data,insider trades
Monday,Tuesday,Wednesday,Thursday,Friday""".splitlines()
)

_EVENTS = {
    "recall": (
        "Safety concerns prompt withdrawal of {n} units",
        "{c} has withdrawn {n} {thing} from sale after faults were found in {part}.",
        "withdrew {thing} because of faulty {part}",
    ),
    "strike": (
        "Walkout enters second week",
        "Some {n} workers at the {p} plant of {c} stopped work on {day} over {grievance}.",
        "faced a walkout in {p} over {grievance}",
    ),
    "purchase": (
        "Regulators weigh {n} million deal",
        "{c} agreed to buy {target}, a maker of {thing}, for {n} million, subject to approval in {p}.",
        "agreed to buy a maker of {thing}",
    ),
    "fine": (
        "Watchdog imposes record penalty",
        "The regulator in {p} fined {c} {n} million for {offense}.",
        "was fined for {offense}",
    ),
    "plant": (
        "New site promises {n} jobs",
        "{c} will open a factory for {thing} in {p}, its first outside the region, and hire {n} people.",
        "plans a factory for {thing}",
    ),
    "outage": (
        "Customers locked out for {n} hours",
        "A failure of {part} left customers of {c} without service for {n} hours on {day}.",
        "lost service because of {part}",
    ),
}
_BACKGROUND = (
    "Analysts at {o} expect little effect on earnings this year.",
    "{person}, chief executive of {c}, declined to comment.",
    "{person} of {o} called the news a surprise.",
    "Shares of {o} fell slightly in early trading.",
    "Officials in {p} said that they had been informed in advance.",
    "{c} reported a loss last year, while {o} doubled its profit.",
    "A spokesperson said that talks with {person} would continue next week.",
    "{o}, a rival, faced a similar situation two years ago.",
    "The announcement follows months of speculation in {p}.",
)


@dataclass(frozen=True)
class Article:
    """A headline and a text."""

    title: str
    text: str


@dataclass(frozen=True)
class Collection:
    """Articles, and questions with the places of the articles that answer them."""

    articles: list[Article]
    questions: list[tuple[str, set[int]]]


def collection(n_articles: int = 800, n_questions: int = 150, seed: int = 7) -> Collection:
    """The collection that the seed determines."""
    draw = random.Random(seed)
    places = _distinct(60, lambda: draw.choice(_ONSETS) + draw.choice(_CODAS))
    companies = _distinct(150, lambda: f"{draw.choice(_ONSETS)}{draw.choice(_CODAS)} {draw.choice(_TRADES)}")
    people = _distinct(200, lambda: f"{draw.choice(_FIRST)} {draw.choice(_LAST)}")
    popular = [1 / (place + 1) ** 0.8 for place in range(len(companies))]  # Zipf

    def company(*others: str) -> str:
        return next(c for c in iter(lambda: draw.choices(companies, popular)[0], "") if c not in others)

    articles: list[Article] = []
    told: list[tuple[str, str, str]] = []  # of each article: company, kind of event, how a question tells it
    while len(articles) < n_articles:
        kind, (headline, lead, asked) = draw.choice(list(_EVENTS.items()))
        c = company()
        slots = {
            "c": c,
            "n": draw.randrange(12, 900),
            "p": draw.choice(places),
            "target": company(c),
            "thing": draw.choice(_THINGS),
            "part": draw.choice(_PARTS),
            "grievance": draw.choice(_GRIEVANCES),
            "offense": draw.choice(_OFFENSES),
            "day": draw.choice(_DAYS),
        }
        if any(c == other and asked.format(**slots) == tale for other, _, tale in told):
            continue
        body = [
            sentence.format(c=c, o=company(c), person=draw.choice(people), p=draw.choice(places))
            for sentence in draw.sample(_BACKGROUND, draw.randrange(3, 8))
        ]
        body.insert(draw.choice((0, 0, 1)), lead.format(**slots))
        articles.append(Article(headline.format(**slots), " ".join(body)))
        told.append((c, kind, asked.format(**slots)))
    return Collection(articles, _questions(draw, told, n_questions))


def _questions(draw: random.Random, told: list[tuple[str, str, str]], wanted: int) -> list[tuple[str, set[int]]]:
    """Half ask which company both events happened to, half compare two companies in one kind of event."""
    questions: list[tuple[str, set[int]]] = []
    while len(questions) < wanted:
        one, other = draw.sample(range(len(told)), 2)
        (company, kind, tale), (company2, kind2, tale2) = told[one], told[other]
        if company == company2 and kind != kind2:
            pairs = [(a, b) for a in _same(told, tale) for b in _same(told, tale2) if told[a][0] == told[b][0]]
            if len(pairs) == 1:  # only this company fits
                questions.append((f"Which company {tale} and also {tale2}?", {one, other}))
        elif company != company2 and kind == kind2 and len(questions) % 2:
            questions.append((f"What do {company}, which {tale}, and {company2}, which {tale2}, share?", {one, other}))
    return questions


def _same(told: list[tuple[str, str, str]], tale: str) -> list[int]:
    return [place for place, (_, _, other) in enumerate(told) if other == tale]


def _distinct(n: int, make: Callable[[], str]) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < n:
        made[make()] = None
    return list(made)
