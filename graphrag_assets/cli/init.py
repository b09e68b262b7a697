"""`init`: the `.env` and the input folder of a new index, also from the settings of Microsoft GraphRAG."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml
from dotenv import dotenv_values
from rich import box
from rich.table import Table
from rich.text import Text

from graphrag_assets.cli.terminal import Console
from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.graphrag_settings import REFERENCE, Translation, translate
from graphrag_assets.settings import Settings

GROUPS = {
    "Where things are": ("data", "input"),
    "Documents": (*("file_pattern", "metadata_columns", "text_column", "title_column", "id_column", "text_encoding"),),
    "Text units": ("chunking", "chunk_size", "tokenizer", "text_unit_context"),
    "Models": (
        *("chat_model", "chat_base_url", "method", "extraction_model", "query_model"),
        *("embedding_model", "embedding_base_url", "model_parameters"),
    ),
    "What models are asked for": (
        *("entity_types", "relationship_types", "max_gleanings"),
        *("claims", "claim_description", "language", "prompts_dir"),
    ),
    "Limits": ("budget_usd", "concurrency", "requests_per_minute", "tokens_per_minute", "request_timeout"),
    "Communities": ("max_cluster_size",),
    "Automation": ("automation",),
}
"""The settings that people usually change."""

_HEAD = """\
# Settings of this index. Commands read them in the folder where they are started; variables of the environment win.
# Lines that begin with # have no effect and show the default. All settings: docs/settings.md
"""
_KEYS = """\
# ---- Keys: the provider's own variable, or one for the server of _CHAT_BASE_URL or _EMBEDDING_BASE_URL
# OPENAI_API_KEY=
# GRAPHRAG_CHAT_API_KEY=
# GRAPHRAG_EMBEDDING_API_KEY=
"""
_NAMES = ("settings.yaml", "settings.yml", "settings.json")
_PLACEHOLDER = "<API_KEY>"  # `graphrag init` writes it
_PLAIN = re.compile(r"[\w./:@%+,=-]*")


@dataclass(frozen=True)
class Source:
    """A settings.yaml of GraphRAG, translated.

    Attributes:
        variables: of its `.env`: those that the settings refer to, or all that would be replaced.
    """

    path: Path
    translation: Translation
    variables: Mapping[str, str]


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option(
    "--from",
    "settings_file",
    type=click.Path(exists=True, path_type=Path),
    help="A settings.yaml of GraphRAG 2 or 3, or its folder, to be translated.",
)
@click.option("--force", is_flag=True, help="Replace an existing .env.")
def init(folder: Path, settings_file: Path | None, force: bool) -> None:
    """Write a commented .env and create the input folder in FOLDER, the current one by default."""
    source = read_source(settings_file, folder) if settings_file else None
    file = folder / ".env"
    if file.exists():
        if not force:
            raise InputError(f"{file} exists. Choose another folder, or replace it with --force.")
        file.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    _write_private(file, env_text(source))
    given = source.translation.settings.get("input") if source else None
    if given is None:
        (folder / "data" / "input").mkdir(parents=True, exist_ok=True)
    _report(folder, source, given or "data/input")


def env_text(source: Source | None = None) -> str:
    """The text of `.env`: the usual settings with their defaults as comments, and the translated ones."""
    given = source.translation.settings if source else {}
    grouped = {name for names in GROUPS.values() for name in names}
    groups = GROUPS | {"Others": tuple(name for name in given if name not in grouped)}
    parts = [_HEAD, *([_origin(source)] if source else [_KEYS])]
    for title, names in groups.items():
        if names:
            parts.append("\n".join([f"# ---- {title}", *(_setting(name, given.get(name)) for name in names)]) + "\n")
    return "\n".join(parts)


def _setting(name: str, value: str | None) -> str:
    option = Settings.model_fields[name]
    default = "" if option.default is None else _quoted(str(option.default))
    variable = f"GRAPHRAG_{name.upper()}"
    line = f"# {variable}={default}" if value is None else f"{variable}={_quoted(value)}"
    return f"# {option.description}\n{line}"


def _origin(source: Source) -> str:
    """The variables that translated settings refer to, keys, and what was not translated."""
    lines = ["# Translated from GraphRAG's settings. Not translated:"]
    # Each in one line, whatever the file holds.
    lines += [f"# {' '.join(f'{key}: {reason}'.split())}" for key, reason in source.translation.left_out.items()]
    lines += ["", "# ---- Variables and keys"]
    for name in source.translation.references():
        if name not in source.variables:
            lines.append(f"# {name}=")
    for name, value in (source.variables | source.translation.variables).items():  # type: ignore[operator]
        lines.append(f"{name}={_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    """A value as python-dotenv reads it."""
    if _PLAIN.fullmatch(value) or re.fullmatch(r"\$\{\w+\}", value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def read_source(path: Path, target: Path) -> Source:
    """The translation of GraphRAG's settings in a file or a folder, for a `.env` in `target`.

    Raises:
        InputError: the file is missing, is not valid YAML, or has no settings of GraphRAG 2 or 3.
    """
    if path.is_dir():
        path = next((path / name for name in _NAMES if (path / name).is_file()), path / _NAMES[0])
    config = _parsed(path)
    translation = translate(config, path.parent, target)
    theirs = {
        name: value
        for name, value in dotenv_values(path.parent / ".env").items()
        if value is not None and value != _PLACEHOLDER
    }
    needed = set(translation.references())
    if (path.parent / ".env").resolve() == (target / ".env").resolve():  # --force replaces it
        ours = {f"GRAPHRAG_{name.upper()}" for name in Settings.model_fields} | translation.variables.keys()
        needed |= theirs.keys() - ours
    for name in sorted(theirs.keys() - needed):
        translation.left_out[f".env: {name}"] = "the settings do not refer to it; copy it if a model needs it"
    for name in sorted(needed - theirs.keys()):
        known = "in the environment, not copied" if name in os.environ else "not set: give it a value in .env"
        translation.left_out[f"${{{name}}}"] = known
    for key in translation.prompts:
        translation.left_out[key] = "carry over what you changed to a copy of the template here: prompts/README.md"
    return Source(path, translation, {name: theirs[name] for name in sorted(needed & theirs.keys())})


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        # GraphRAG replaces references before it parses: [${A}, b] is a list to it, but no YAML.
        config = _restored(yaml.safe_load(REFERENCE.sub(r"__reference_\1__", path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # without the line itself, which may hold a key
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(
            f"{path}{line} is not valid YAML: {getattr(error, 'problem', '') or 'a bad character'}."
        ) from None
    if not isinstance(config, Mapping):
        raise InputError(f"{path} has no settings of GraphRAG.")
    return config


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _restored(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_restored(inner) for inner in value]
    return re.sub(r"__reference_(\w+?)__", r"${\1}", value) if isinstance(value, str) else value


def _write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _report(folder: Path, source: Source | None, input_folder: str) -> None:
    console = Console()
    if source:
        console.say(f"Translated {len(source.translation.settings)} settings of {source.path}. Not translated:")
        console.print(_left_out(source.translation.left_out))
    console.say(f"Written: {folder / '.env'}, readable by you alone.")
    console.say("Next:")
    if folder.resolve() != Path.cwd():
        console.say(f"  cd {folder}")
    if not source:
        console.say("  edit .env                  # models; without one, the embedded default")
    if not (source and "input" in source.translation.settings):
        console.say(f"  put documents in {input_folder}/")
    console.say("  graphrag-assets doctor     # whether the models answer")
    console.say("  graphrag-assets index plan # what the index will cost")
    console.say("  graphrag-assets index")
    console.say('  graphrag-assets query ask "…"')
    if source and (output := source.path.parent / "output").is_dir():
        console.say(f"Or keep the index of GraphRAG: graphrag-assets import {output.resolve()}")


def _left_out(left_out: Mapping[str, str]) -> Table:
    """The keys by reason."""
    table = Table(box=box.SIMPLE_HEAD, show_lines=True)
    table.add_column("key", overflow="fold")
    table.add_column("why, or what to do", overflow="fold")
    for reason in dict.fromkeys(left_out.values()):
        table.add_row(Text("\n".join(key for key in left_out if left_out[key] == reason)), Text(reason))
    return table
