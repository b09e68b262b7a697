"""The prompts of all model tasks: Jinja templates, found by precedence, checked when loaded, rendered to messages.

A template has the block `user` and usually the block `system`; each becomes one message. Blocks, unlike markers in
the text, cannot be started by a document. Values from documents are fenced before they reach a template, so a custom
template cannot omit the fence.
"""

import functools
import hashlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from graphrag_assets.errors import SettingsError
from graphrag_assets.ids import stable_id
from graphrag_assets.llm.model_options import Message
from graphrag_assets.settings import Settings

_SUFFIX = ".jinja"
_FORMAT = "1"  # of fences and messages; part of every fingerprint


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The placeholders of a task's template, and the messages that it makes.

    A template must use `required` and `data`, it may use `optional`. `data` are the values taken from documents,
    each with the name of its fence.
    """

    data: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset({"system", "user"})

    @property
    def needed(self) -> frozenset[str]:
        return self.required | self.data.keys()

    @property
    def all(self) -> frozenset[str]:
        return self.needed | self.optional


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_USER = frozenset({"user"})  # follows the document of another prompt, which has a system message
_REPORT = Placeholders({"context": "data"}, optional=_names("max_words language dated"))
_ANSWER = Placeholders({"context": "data"}, _names("question"), _names("response_type no_answer history language"))
_REDUCE = Placeholders(
    {"points": "notes"}, _names("question"), _names("response_type no_answer max_words history language")
)

TASKS: Mapping[str, Placeholders] = {
    "text_unit_context": Placeholders({"document": "document", "passage": "passage"}, optional=_names("language")),
    "extract_graph": Placeholders(
        {"text": "document"}, _names("entity_types claim_description"), _names("other_types language")
    ),
    "extract_graph_types": Placeholders(
        required=_names("relationship_types strict_relationship_types strict_entity_types"),
        blocks=frozenset({"system"}),
    ),
    "extract_graph_date": Placeholders(required=_names("document_date"), blocks=_USER),
    "extract_graph_continue": Placeholders({"listed": "listed"}, optional=_names("claim_description"), blocks=_USER),
    "summarize_descriptions": Placeholders({"descriptions": "descriptions"}, optional=_names("max_words language")),
    "summarize_descriptions_together": Placeholders(required=_names("count"), blocks=frozenset({"system"})),
    "community_report": _REPORT,
    "community_report_text": _REPORT,
    "local_search": _ANSWER,
    "basic_search": _ANSWER,
    "global_map": Placeholders({"context": "data"}, _names("question"), _names("max_words history language")),
    "global_reduce": Placeholders(_REDUCE.data, _REDUCE.required, _REDUCE.optional | {"general_knowledge"}),
    "global_knowledge": Placeholders(blocks=frozenset({"system"})),
    "drift_primer": Placeholders({"context": "data"}, _names("question follow_ups"), _names("history language")),
    "drift_local": Placeholders({"context": "data"}, _names("question follow_ups"), _names("main_question language")),
    "drift_reduce": _REDUCE,
    "hypothetical_answer": Placeholders({"example": "example"}, _names("question")),
    "question_generation": Placeholders({"context": "data"}, _names("count"), _names("history language")),
    "community_rating": Placeholders({"reports": "data"}, _names("question")),
    "sub_questions": Placeholders({"concepts": "data"}, _names("question count"), _names("history")),
    "rerank_passages": Placeholders({"passages": "data"}, _names("question count")),
    "link_question": Placeholders(required=_names("question"), optional=_names("history")),
    "relevance_test": Placeholders({"passages": "data"}, _names("question")),
    "plan_question": Placeholders(required=_names("question max_steps"), optional=_names("history")),
    "answer_step": Placeholders({"context": "data"}, _names("question kind"), _names("main_question")),
    "question_kind": Placeholders(required=_names("question kinds"), optional=_names("history")),
}


def fence(text: str, name: str = "document") -> str:
    """`text` between marks that do not occur in it, so that it cannot end the fence.

    >>> print(fence("The cable broke."))
    <document id="5b64f2c8">
    The cable broke.
    </document 5b64f2c8>
    """
    mark, attempt = "", 0
    while not mark or mark in text:
        mark = hashlib.blake2b(f"{attempt}\x1f{text}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        attempt += 1
    return f'<{name} id="{mark}">\n{text}\n</{name} {mark}>'


@dataclass(frozen=True, slots=True)
class _Template:
    """A parsed template, the name of its file for messages, and the hash of its source."""

    origin: str
    compiled: jinja2.Template
    fingerprint: str


class Prompts:
    """The templates in use: for each task the first one found, in order of precedence.

    Args:
        folder: GRAPHRAG_PROMPTS_DIR: files named as the task with the ending .jinja; it may lack some.
        tuned: the folder that auto-tuning writes to; it may be missing.

    The templates of the package come last.

    Raises:
        SettingsError: a file belongs to no task, is not a valid template, refers to an unknown
            placeholder, or lacks a required one.
    """

    def __init__(self, folder: Path | None = None, tuned: Path | None = None) -> None:
        self._files: dict[str, Path] = {}
        if tuned is not None and tuned.is_dir():
            self._files |= _templates_in(tuned)
        if folder is not None:
            if not folder.is_dir():
                raise SettingsError(f"GRAPHRAG_PROMPTS_DIR={folder} is not a folder. Correct or unset it.")
            self._files |= _templates_in(folder)
        self._loaded: dict[str, _Template] = {}
        for task in self._files:  # those of the package are checked by its tests
            self._template(task)

    def render(self, task: str, **values: object) -> tuple[Message, ...]:
        """The messages of `task`, the system message first.

        Args:
            values: one for each of the task's placeholders; None if it does not apply, such as the language
                when the output follows the documents.

        Raises:
            TypeError: a value is missing, or there is no placeholder for it.
        """
        template, placeholders = self._template(task), TASKS[task]
        if odd := placeholders.all ^ values.keys():
            raise TypeError(f"The prompt {task} takes {_listed(placeholders.all)}; check {_listed(odd)}.")
        fenced = {name: fence(str(values[name]), label) for name, label in placeholders.data.items()}
        return tuple(_messages(template, values | fenced))

    def fingerprint(self, task: str) -> str:
        """Hash of the template in use; rows made with another one are out of date."""
        return self._template(task).fingerprint

    def source(self, task: str) -> str:
        """The text of the template in use."""
        _known(task, "a prompt")
        return _read(self._files.get(task) or _built_in() / f"{task}{_SUFFIX}")

    def _template(self, task: str) -> _Template:
        if task not in self._loaded:
            source = self.source(task)
            origin = str(self._files.get(task) or f"{task}{_SUFFIX} of the package")
            self._loaded[task] = _Template(
                origin, _compiled(task, source, origin), stable_id("prompt", _FORMAT, task, source)
            )
        return self._loaded[task]


@functools.lru_cache(maxsize=8)
def prompts_of(settings: Settings) -> Prompts:
    """The prompt templates of these settings."""
    return Prompts(folder=Path(settings.prompts_dir) if settings.prompts_dir else None, tuned=settings.data / "prompts")


def prompt_text(messages: tuple[Message, ...]) -> str:
    """All messages as one text."""
    return "\n\n".join(message["content"] for message in messages)


@functools.cache
def _built_in() -> Traversable:
    """The folder of the package's templates: inside it when installed from a wheel, else next to it."""
    installed = resources.files("graphrag_assets") / "prompts"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "prompts"


def _read(file: Traversable | Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The prompt file {file} cannot be read: {error}.") from None


def _templates_in(folder: Path) -> dict[str, Path]:
    files = {path.stem: path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "README"))}
    for task, path in files.items():
        if path.suffix != _SUFFIX:
            raise SettingsError(
                f"{path} is not a prompt: prompts are named as their task and end in {_SUFFIX}. Rename it, or move it "
                "out of the folder."
            )
        _known(task, f"the prompt file {path}")
    return files


def _known(task: str, what: str) -> None:
    if task not in TASKS:
        raise SettingsError(f"Unknown task {task!r} for {what}. The tasks are: {', '.join(sorted(TASKS))}.")


def _environment() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )


def _compiled(task: str, source: str, origin: str) -> jinja2.Template:
    environment, placeholders = _environment(), TASKS[task]
    try:
        tree = environment.parse(source, filename=origin)
        compiled = environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise SettingsError(f"{origin}, line {error.lineno}: {error.message}") from None
    available = f"Available: {_listed(placeholders.all)}."
    for other in tree.find_all((nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)):
        raise SettingsError(f"{origin}, line {other.lineno}: a prompt stands alone, it cannot load other templates.")
    used: Set[str] = meta.find_undeclared_variables(tree) - environment.globals.keys()
    unknown = used - placeholders.all
    if unknown:
        line = min(node.lineno for node in tree.find_all(nodes.Name) if node.name in unknown)
        raise SettingsError(f"{origin}, line {line}: unknown placeholder {_listed(unknown)}. {available}")
    if missing := placeholders.needed - used:
        raise SettingsError(f"{origin}: the placeholder {_listed(missing)} is missing. {available}")
    blocks = compiled.blocks.keys()
    if blocks - placeholders.blocks or not blocks or ("user" in placeholders.blocks and "user" not in blocks):
        wanted = " and ".join(f"{{% block {name} %}}…{{% endblock %}}" for name in sorted(placeholders.blocks))
        found = f"has the block {', '.join(sorted(blocks))}" if blocks else "has no block"
        raise SettingsError(f"{origin} {found}. It needs {wanted}.")
    return compiled


def _messages(template: _Template, values: Mapping[str, object]) -> Iterator[Message]:
    roles: tuple[Literal["system", "user"], ...] = ("system", "user")
    for role in roles:
        if role in template.compiled.blocks:
            try:
                context = template.compiled.new_context(dict(values))
                content = "".join(template.compiled.blocks[role](context)).strip()
            except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
                raise SettingsError(f"{template.origin} cannot be rendered: {error}") from None
            yield Message(role=role, content=content)


def _listed(placeholders: Set[str]) -> str:
    return ", ".join(f"{{{{ {name} }}}}" for name in sorted(placeholders)) or "nothing"
