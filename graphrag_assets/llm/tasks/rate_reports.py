"""Ratings of community reports: how relevant each of several reports is for a question."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar

from pydantic import model_validator

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.structured_output import Salvaged
from graphrag_assets.llm.tasks.answer_forms import AnswerForm, Form, Stars, Text
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin
from graphrag_assets.llm.tasks.shared_requests import answers_on, by_place

TASK = "community_rating"


class ReportRating(Form):
    other_names: ClassVar = {"number": "id", "report": "id", "score": "rating"}
    id: int
    reason: Text = ""
    rating: Stars = None

    @model_validator(mode="after")
    def _rated(self) -> "ReportRating":
        if self.rating is None:
            raise ValueError("rating must be a number from 0 to 5")
        return self


class CommunityRatings(AnswerForm):
    other_names: ClassVar = {"reports": "ratings"}
    ratings: Salvaged[ReportRating]

    @model_validator(mode="after")
    def _some(self) -> "CommunityRatings":
        if not self.ratings:
            raise ValueError("there is no rating")
        return self


async def ratings_of(
    chat: Chat, prompts: Prompts, question: str, reports: Sequence[str], repeat: int, origin: Origin
) -> tuple[list[float | None], Usage]:
    """The rating of each report, 0 to 5, None if the answer leaves it out; only unknown ratings are requested.

    Each `repeat` is a different request; otherwise the ledger would return the first rating.

    Raises:
        Exception: what `chat` raises.
    """

    def request(several: Sequence[str]) -> ChatRequest:
        listed = "\n\n".join(f"[{number}] {report}" for number, report in enumerate(several, 1))
        messages = prompts.render(TASK, reports=listed, question=question)
        asked = origin.request(TASK, messages, CommunityRatings)
        if not repeat:
            return asked
        again = Message(role="user", content=f"Rate independently, as reader {repeat + 1}.")
        return replace(asked, messages=(*messages, again), temperature=1.0)

    found, usage = await answers_on(chat, reports, request, CommunityRatings, _split)
    return [None if one is None else _by_place(one, 1).get(0) for one in found], usage


def _by_place(found: CommunityRatings, count: int) -> dict[int, float]:
    rated = by_place(found.ratings, attrgetter("id"), count)
    return {place: one.rating for place, one in rated.items() if one.rating is not None}


def _split(reports: Sequence[str], found: CommunityRatings) -> Mapping[int, str]:
    """The rating of each report, by place, as the answer to a request of its own."""
    return {
        place: json.dumps({"ratings": [{"id": 1, "rating": rating}]}, separators=(",", ":"))
        for place, rating in _by_place(found, len(reports)).items()
    }
