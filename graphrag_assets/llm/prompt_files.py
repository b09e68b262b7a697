"""The user's templates: `<task>.jinja` in a folder. A file that belongs to no task is an error."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from graphrag_assets.errors import SettingsError

SUFFIX = ".jinja"


class PromptSource(NamedTuple):
    """The text of a template, and the name of its file for messages."""

    origin: str
    text: str


def prompt_sources(tasks: Sequence[str], folder: Path | None) -> dict[str, PromptSource]:
    """The user's templates in `folder` by task.

    Raises:
        SettingsError: a file cannot be read or belongs to no task; the message names the nearest.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise SettingsError(f"GRAPHRAG_PROMPTS_DIR={folder} is not a folder. Correct or unset it.")
    sources: dict[str, PromptSource] = {}
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith((".", "README"))):
        task = path.name.removesuffix(SUFFIX)
        if task not in tasks or task == path.name:
            nearest = difflib.get_close_matches(task, tasks, 1, 0)[0]
            raise SettingsError(
                f"{path} is not a prompt. The nearest is {nearest}{SUFFIX}; "
                "prompts/README.md lists all. Rename it, or move it out of the folder."
            )
        try:
            sources[task] = PromptSource(str(path), path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The prompt file {path} cannot be read: {error}.") from None
    return sources
