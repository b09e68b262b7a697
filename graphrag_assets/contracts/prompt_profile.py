"""The prompt profile: what prompts say about a corpus. It is data for templates, never a template."""

from dataclasses import dataclass, fields, replace

from graphrag_assets.contracts.records import EntityRecord, RelationshipRecord
from graphrag_assets.ids import stable_id
from graphrag_assets.text.languages import NAMES

BUILT_IN = 0
"""The version that stands for the built-in prompts: no profile."""


@dataclass(frozen=True, slots=True)
class ProfileType:
    """A type of entities or relationships: its mentions in the sample, what it means, and a few of its names there."""

    type: str
    n: int = 0
    definition: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """A passage of a text unit, and the records that extraction is to find there."""

    text_unit_id: str
    text: str
    entities: tuple[EntityRecord, ...] = ()
    relationships: tuple[RelationshipRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptProfile:
    """What prompts say about a corpus.

    `language`: ISO 639-1 code of the language to write in; empty: that of the documents. `id`: hash of all else when
    the profile was made. It stays when a purge takes out examples, so that nothing is extracted again for that.
    """

    domain: str = ""
    language: str = ""
    persona: str = ""
    rating_scale: str = ""
    entity_types: tuple[ProfileType, ...] = ()
    relationship_types: tuple[ProfileType, ...] = ()
    examples: tuple[WorkedExample, ...] = ()
    id: str = ""

    @property
    def language_name(self) -> str | None:
        """The language's name in English."""
        return NAMES.get(self.language)

    def identified(self) -> "PromptProfile":
        """Return this profile with the id of its content."""
        return replace(self, id=stable_id("profile", *(getattr(self, f.name) for f in fields(self) if f.name != "id")))
