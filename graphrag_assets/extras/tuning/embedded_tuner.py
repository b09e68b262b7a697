"""Prompt tuning without a chat model: the embedded default's extraction, and what its types mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.embedded import EXTRACTOR, extract_unit
from graphrag_assets.extras.tuning.entity_types import defined
from graphrag_assets.extras.tuning.examples import Measures, Readings

_TYPES = {
    "PERSON": "a human being by name",
    "ORGANIZATION": "a company, institution, party or other group that acts as one",
    "GEO": "a place: country, region, town, body of water, building",
    "EVENT": "something that happened, by its name",
    "CONCEPT": "a thing or idea that several passages speak of by a common noun",
    "NAME": "a name of another or unknown kind",
}


class EmbeddedTuner:
    """What prompt tuning asks of models, by the embedded default."""

    @property
    def model(self) -> str:
        """What makes the profile."""
        return EXTRACTOR

    @property
    def usage(self) -> Mapping[str, Usage]:
        """Usage so far, by task."""
        return {}

    def untyped(self, units: Iterable[TextUnit]) -> Readings:
        """Extractions by unit."""
        return {unit.id: extract_unit(unit.text, unit.title, unit.language) for unit in units}

    def described(self, draft: PromptProfile, texts: Sequence[str]) -> PromptProfile:
        """The draft with definitions of its types."""
        return replace(draft, entity_types=defined(draft.entity_types, _TYPES))

    def readings(self, draft: PromptProfile, units: Sequence[TextUnit]) -> tuple[Readings, Readings]:
        """The same extraction twice: it is deterministic."""
        found = self.untyped(units)
        return found, found

    def proof(self, profile: PromptProfile, units: Sequence[TextUnit]) -> dict[str, Measures]:
        """Nothing: there are no prompts to compare."""
        return {}
