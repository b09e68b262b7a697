"""Gleaning: further requests in the same conversation for missed records."""

from dataclasses import replace
from typing import TypeVar

from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.answer_forms import RecordsForm
from graphrag_assets.llm.tasks.chat_protocol import Chat, ask, stops_the_run

Form = TypeVar("Form", bound=RecordsForm)


async def request_rounds(
    chat: Chat, prompts: Prompts, first: ChatRequest, form: type[Form], max_gleanings: int
) -> list[Form]:
    """The answer to `first`, then up to `max_gleanings` answers with missed records.

    Ends with the first round that finds nothing more. A failed gleaning keeps the answers before it; only errors that
    stop the whole run, such as an exhausted budget, are raised, so that the round is repeated by the next run.
    """
    request, answers = first, [await ask(chat, first, form)]
    more = prompts.render(f"{first.task}_continue") if max_gleanings else ()
    for _ in range(max_gleanings):
        # Compact JSON of the valid records: indentation costs tokens, and dropped records may be returned again.
        said = Message(role="assistant", content=answers[-1].model_dump_json())
        request = replace(request, task=f"{first.task}_continue", messages=(*request.messages, said, *more))
        try:
            answer = await ask(chat, request, form)
        except Exception as error:
            if stops_the_run(error):
                raise
            break
        if answer.empty:
            break
        answers.append(answer)
    return answers
