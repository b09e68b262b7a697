"""The prompts of all model tasks: Jinja templates, found by precedence, checked when loaded, rendered to messages.

A template has the block `user` and usually the block `system`; each becomes one message. Blocks, unlike markers in
the text, cannot be started by a document. Values from documents are fenced before they reach a template, so a custom
template cannot omit the fence.
"""

import difflib
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Set
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from graphrag_assets.contracts.prompt_profile import ProfileType, PromptProfile, WorkedExample
from graphrag_assets.errors import SettingsError
from graphrag_assets.ids import stable_id
from graphrag_assets.llm.model_options import Message
from graphrag_assets.llm.task import with_rules
from graphrag_assets.llm.tasks.table import PROFILE, TASKS
from graphrag_assets.settings import Settings

SUFFIX = ".jinja"
_FORMAT = "1"  # of fences and messages; part of every fingerprint


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


class _Template(NamedTuple):
    """A parsed template, its text, and the name of its file for messages."""

    task: str
    text: str
    origin: str
    blocks: Mapping[str, Any]
    context: Callable[[dict[str, object]], Any]

    @property
    def fingerprint(self) -> str:
        return stable_id("prompt", _FORMAT, self.task, self.text)


class Prompts:
    """The templates in use: for each task the first one found, in order of precedence.

    `folder`: GRAPHRAG_PROMPTS_DIR, with a file `<task>.jinja` for some tasks. `profile`: is added to the templates of
    the package, which come last. Raises SettingsError for a file that is no prompt.
    """

    def __init__(self, folder: Path | None = None, profile: PromptProfile | None = None) -> None:
        self.profile = profile
        self._own = dict(_own_templates(folder)) if folder else {}

    def render(self, task: str, **values: object) -> tuple[Message, ...]:
        """Return the messages of `task`, the system message first; a placeholder that does not apply is None."""
        template, entry = self._template(task), TASKS[task]
        if odd := entry.all ^ values.keys():
            raise TypeError(f"The prompt {task} takes {_listed(entry.all)}; check {_listed(odd)}.")
        fenced = {name: fence(str(values[name]), label) for name, label in entry.data.items()}
        messages = tuple(_messages(template, values | fenced))
        if not (profile := self._profile_of(task)):
            return messages
        return with_rules(messages, self.render(PROFILE.name, **_used_of_profile(profile, task, values)))

    def fingerprint(self, task: str) -> str:
        """Hash of the template in use, and of the profile where it is added; rows made with others are out of date."""
        of_template, profile = self._template(task).fingerprint, self._profile_of(task)
        return stable_id(of_template, self._template(PROFILE.name).fingerprint, profile.id) if profile else of_template

    def _profile_of(self, task: str) -> PromptProfile | None:
        """Return the profile, if the prompt of a task uses it; the user's own prompts do not."""
        parts = (name for name in TASKS[task].profile.split() if name != "claims")
        is_used = task not in self._own and any(getattr(self.profile, name, None) for name in parts)
        return self.profile if is_used else None

    def _template(self, task: str) -> _Template:
        if task not in TASKS:
            raise SettingsError(f"Unknown task {task!r} for a prompt. The tasks are: {', '.join(sorted(TASKS))}.")
        return self._own.get(task) or _built_in(task)


def _own_templates(folder: Path) -> Iterator[tuple[str, _Template]]:
    """Yield the user's templates in `folder` by task."""
    if not folder.is_dir():
        raise SettingsError(f"GRAPHRAG_PROMPTS_DIR={folder} is not a folder. Correct or unset it.")
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith((".", "README"))):
        task = path.name.removesuffix(SUFFIX)
        if task not in TASKS or task == path.name:
            nearest = difflib.get_close_matches(task, TASKS, 1, 0)[0]
            raise SettingsError(
                f"{path} is not a prompt. The nearest is {nearest}{SUFFIX}; "
                "prompts/README.md lists all. Rename it, or move it out of the folder."
            )
        try:
            yield task, _compiled(task, path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The prompt file {path} cannot be read: {error}.") from None


@functools.cache
def _built_in(task: str) -> _Template:
    """Return the package's template: inside it when installed from a wheel, else next to it."""
    installed = resources.files("graphrag_assets") / "prompts"
    folder = installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "prompts"
    text = (folder / f"{task}{SUFFIX}").read_text(encoding="utf-8")
    return _compiled(task, text, f"{task}{SUFFIX} of the package")


@functools.lru_cache(maxsize=8)
def prompts_of(settings: Settings, profile: PromptProfile | None = None) -> Prompts:
    """Return the prompt templates of these settings, with the prompt profile in force. Raises SettingsError."""
    unread = settings.data / "prompts"
    if unread.exists():
        raise SettingsError(f"{unread} is not read. Set GRAPHRAG_PROMPTS_DIR={unread}, or remove the folder.")
    return Prompts(Path(settings.prompts_dir) if settings.prompts_dir else None, profile)


def _used_of_profile(profile: PromptProfile, task: str, values: Mapping[str, object]) -> dict[str, object]:
    """Return what a task's prompt uses of the profile. Types given in place of the profile's have no definitions in
    it.
    """
    types = [kind.type for kind in profile.entity_types]
    typed = values.get("entity_types") == ", ".join(types)
    used: dict[str, object] = {
        "persona": profile.persona,
        "domain": profile.domain,
        "written_in": profile.language_name,
        "rating_scale": profile.rating_scale,
        "entity_types": "\n".join(map(_defined, profile.entity_types)) if typed else None,
        "examples": "\n\n".join(map(_shown, profile.examples)) if typed else None,
        "claims": values.get("claim_description"),
    }
    return {name: value if name in TASKS[task].profile.split() else None for name, value in used.items()}


def _defined(kind: ProfileType) -> str:
    return f"- {kind.type}: {kind.definition}" if kind.definition else f"- {kind.type}"


def _shown(example: WorkedExample) -> str:
    """Return an example as a prompt shows it: the fenced passage, then the answer."""
    names = ("source", "target", "type", "description")
    entities = [{"name": e.title, "type": e.type, "description": e.description} for e in example.entities]
    related = [{**{n: getattr(r, n) for n in names}, "strength": round(r.strength)} for r in example.relationships]
    answer = {"entities": entities, "relationships": related}
    return f"{fence(example.text)}\n{json.dumps(answer, ensure_ascii=False)}"


def prompt_text(messages: tuple[Message, ...]) -> str:
    """All messages as one text."""
    return "\n\n".join(message["content"] for message in messages)


def _compiled(task: str, source: str, origin: str) -> _Template:
    entry, options = TASKS[task], {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = ImmutableSandboxedEnvironment(autoescape=False, **options)
    try:
        tree = environment.parse(source, filename=origin)
        compiled = environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise SettingsError(f"{origin}, line {error.lineno}: {error.message}") from None
    for other in tree.find_all((nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)):
        raise SettingsError(f"{origin}, line {other.lineno}: a prompt stands alone, it cannot load other templates.")
    used: Set[str] = meta.find_undeclared_variables(tree) - environment.globals.keys()
    unknown = used - entry.all
    if unknown:
        line = min(node.lineno for node in tree.find_all(nodes.Name) if node.name in unknown)
        raise SettingsError(
            f"{origin}, line {line}: unknown placeholder {_listed(unknown)}. Available: {_listed(entry.all)}."
        )
    if missing := entry.needed - used:
        raise SettingsError(
            f"{origin}: the placeholder {_listed(missing)} is missing. Available: {_listed(entry.all)}."
        )
    blocks = compiled.blocks.keys()
    if blocks - entry.blocks or not blocks or ("user" in entry.blocks and "user" not in blocks):
        wanted = " and ".join(f"{{% block {name} %}}…{{% endblock %}}" for name in sorted(entry.blocks))
        what = f"has the block {', '.join(sorted(blocks))}" if blocks else "has no block"
        raise SettingsError(f"{origin} {what}. It needs {wanted}.")
    return _Template(task, source, origin, compiled.blocks, compiled.new_context)


def _messages(template: _Template, values: Mapping[str, object]) -> Iterator[Message]:
    roles: tuple[Literal["system", "user"], ...] = ("system", "user")
    for role in roles:
        if role in template.blocks:
            try:
                content = "".join(template.blocks[role](template.context(dict(values)))).strip()
            except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
                raise SettingsError(f"{template.origin} cannot be rendered: {error}") from None
            yield Message(role=role, content=content)


def _listed(placeholders: Set[str]) -> str:
    return ", ".join(f"{{{{ {name} }}}}" for name in sorted(placeholders)) or "nothing"
