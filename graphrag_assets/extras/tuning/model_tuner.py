"""Prompt tuning by the chat models that have the tasks of indexing."""

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.extras.tuning.embedded_tuner import EmbeddedTuner
from graphrag_assets.extras.tuning.entity_types import defined, listed_type
from graphrag_assets.extras.tuning.examples import Measures, Readings, measured
from graphrag_assets.extras.tuning.prompts import ReadingChat, describe_corpus
from graphrag_assets.indexing.model_tasks import IndexingTasks, tuning_use
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.prompts import Prompts, prompts_of
from graphrag_assets.llm.tasks.chat_protocol import Origin
from graphrag_assets.llm.tasks.extract_graph import ExtractionOptions
from graphrag_assets.settings import Use

log = logging.getLogger(__name__)
_ANY_TYPE = "the general noun that says best what kind of thing it is"
IN_FORCE, TUNED = "in force", "tuned"
"""The prompts that are compared."""


@dataclass(frozen=True)
class ModelTuner(EmbeddedTuner):
    """What prompt tuning asks of chat models; where the embedded default extracts, it does so here too.

    `remember` is called with the text units that are extracted next.
    """

    tasks: IndexingTasks
    remember: Callable[[Iterable[TextUnit]], Iterable[TextUnit]] = iter

    @property
    def model(self) -> str:
        """The chat model that describes the corpus."""
        return self.tasks.settings.model_of(tuning_use(self.tasks.settings))

    @property
    def usage(self) -> Mapping[str, Usage]:
        """Usage so far, by task."""
        return self.tasks.meter.by_task

    @property
    def _extracts(self) -> bool:
        return self.tasks.settings.choices.extraction == "model"

    def untyped(self, units: Iterable[TextUnit]) -> Readings:
        """Extractions whose types are the model's choice."""
        if not self._extracts:
            return super().untyped(units)
        language = self.tasks.settings.language or None
        options = ExtractionOptions(entity_types=(_ANY_TYPE,), max_gleanings=0, language=language)
        return self._read(units, self._prompts(None), options)[0]

    def described(self, draft: PromptProfile, texts: Sequence[str]) -> PromptProfile:
        """The draft with domain, persona, rating scale, and definitions of its types."""
        settings = self.tasks.settings
        found = wait_for(
            describe_corpus(
                self.tasks.chats(tuning_use(settings)),
                self._prompts(None),
                texts,
                draft.entity_types,
                settings.language or draft.language_name,
                settings.tokenizer,
                Origin(run_id=self.tasks.run_id),
            )
        )
        types = defined(draft.entity_types, {one.type: one.definition for one in found.definitions})
        domain, persona, scale = (found.line(name) for name in ("domain", "persona", "rating_scale"))
        return replace(draft, entity_types=types, domain=domain, persona=persona, rating_scale=scale)

    def readings(self, draft: PromptProfile, units: Sequence[TextUnit]) -> tuple[Readings, Readings]:
        """Two extractions of the text units with the draft's types, asked for in different words."""
        if not self._extracts:
            return super().readings(draft, units)
        prompts = self._prompts(draft)
        options = replace(
            self._with(prompts).extraction,
            entity_types=tuple(kind.type for kind in draft.entity_types),
            relationship_types=tuple(kind.type for kind in draft.relationship_types),
            claim_description=None,
            max_gleanings=0,
        )
        first, _ = self._read(units, prompts, options)
        return first, self._read(units, prompts, options, in_other_words=True)[0]

    def proof(self, profile: PromptProfile, units: Sequence[TextUnit]) -> dict[str, Measures]:
        """Measures of the text units with the prompts in force, and with those of the profile."""
        if not self._extracts or not units:
            return {}
        return {
            IN_FORCE: self._measured(self.tasks.prompts, units),
            TUNED: self._measured(self._prompts(profile), units),
        }

    def _measured(self, prompts: Prompts, units: Sequence[TextUnit]) -> Measures:
        """Measures of two readings, each as indexing reads: what it has paid for comes from the ledger."""
        first, tokens = self._read(units, prompts)
        second, _ = self._read(units, prompts, in_other_words=True)
        return measured(units, first, second, listed_type(self._with(prompts).extraction.entity_types), tokens)

    def _read(
        self,
        units: Iterable[TextUnit],
        prompts: Prompts,
        options: ExtractionOptions | None = None,
        in_other_words: bool = False,
    ) -> tuple[Readings, int]:
        """Extractions by unit, and the tokens of their requests and answers; a failed one is left out."""

        @functools.cache
        def chats(use: Use) -> ReadingChat:
            return ReadingChat(self.tasks.chats(use), self.tasks.settings.tokenizer, in_other_words)

        readings: dict[str, UnitExtraction] = {}
        for unit, found in replace(self.tasks, prompts=prompts, chats=chats, options=options).extract(
            self.remember(units)
        ):
            if isinstance(found, UnitExtraction):
                readings[unit] = found
            else:
                log.warning("the text unit %s is left out of the tuning: %s", unit, found)
        return readings, chats("extraction").tokens

    def _with(self, prompts: Prompts) -> IndexingTasks:
        return replace(self.tasks, prompts=prompts)

    def _prompts(self, profile: PromptProfile | None) -> Prompts:
        return prompts_of(self.tasks.settings, profile)
