"""The user's prompt files, in a folder. A file that belongs to no prompt is an error.

extract_graph.jinja                 the template of a task
index/extract_graph/system.jinja    one message of it, by its stage key; .txt too, as GraphRAG for .NET names them
local_search_system_prompt.txt      a prompt of Microsoft GraphRAG by its file name, where it can be translated
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphrag_assets.errors import SettingsError
from graphrag_assets.llm.graphrag_prompts import FILES, translate_prompt

SUFFIX = ".jinja"
KINDS = ("system", "user")
_INDEX = ("text_unit_context", "extract_graph", "summarize", "community_report", "tune_prompts", "profile")
_WORKFLOWS = {"community_report": "community_reports"}
"""Other names of tasks in stage keys, as GraphRAG for .NET has them."""


class PromptSource(NamedTuple):
    """The text of a template or of one block of it, and the name of its file for messages."""

    origin: str
    text: str


Sources = tuple[dict[str, PromptSource], dict[tuple[str, str], PromptSource]]
"""Templates by task, and blocks that replace those of their templates by task and kind."""


def prompt_sources(tasks: Sequence[str], folder: Path | None) -> Sources:
    """The user's prompts in `folder`.

    Raises:
        SettingsError: a file cannot be read or belongs to no prompt; the message names the nearest.
    """
    names = {name: place for task in tasks for name, place in _names(task)}
    sources: dict[tuple[str, str], PromptSource] = {}
    for place, source in (_source(names, *one) for one in _in_folder(folder)):
        if place in sources:
            raise SettingsError(f"{sources[place].origin} and {source.origin} are the same prompt. Remove one of them.")
        sources[place] = source
    templates = {task: source for (task, kind), source in sources.items() if not kind}
    return templates, {place: source for place, source in sources.items() if place[1]}


def _names(task: str) -> Iterable[tuple[str, tuple[str, str]]]:
    """The names of a task's files without endings, each with the task and the block that it is, if any."""
    section = "index" if task.startswith(_INDEX) else "query"
    yield task, (task, "")
    for kind in KINDS:
        for workflow in {task, _WORKFLOWS.get(task, task)}:
            yield f"{section}/{workflow}/{kind}", (task, kind)


def _in_folder(folder: Path | None) -> list[tuple[str, Path]]:
    """The files of the folder: name without ending, path."""
    if folder is None:
        return []
    if not folder.is_dir():
        raise SettingsError(f"GRAPHRAG_PROMPTS_DIR={folder} is not a folder. Correct or unset it.")
    paths = (path for path in sorted(folder.rglob("*")) if not path.is_dir() or not any(path.iterdir()))
    found = [(path.relative_to(folder), path) for path in paths]
    hidden = (".", "README")
    return [
        (name.with_suffix("").as_posix(), path)
        for name, path in found
        if not any(part.startswith(hidden) for part in name.parts)
    ]


def _source(names: Mapping[str, tuple[str, str]], name: str, path: Path) -> tuple[tuple[str, str], PromptSource]:
    """What a file is, and its text."""
    if path.suffix == ".txt" and path.stem in FILES and "/" not in name:
        translated = translate_prompt(FILES[path.stem], _read(path))
        if isinstance(translated, str):
            raise SettingsError(
                f"The GraphRAG prompt {path} cannot be used: {translated}. Then move it out of the folder."
            )
        return (translated[0], ""), PromptSource(str(path), translated[1])
    endings = (SUFFIX, ".txt") if names.get(name, ("", ""))[1] else (SUFFIX,)
    if name not in names or path.suffix not in endings:
        nearest = difflib.get_close_matches(name, names, 1, 0)[0]
        raise SettingsError(
            f"{path} is not a prompt. The nearest is {nearest}{SUFFIX}; "
            "prompts/README.md lists all. Rename it, or move it out of the folder."
        )
    return names[name], PromptSource(str(path), _read(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The prompt file {path} cannot be read: {error}.") from None
