"""`init`: a new index's `.env`, also from the settings of Microsoft GraphRAG, and input folder; `dev`: its UI."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import yaml
from dotenv import dotenv_values

from graphrag_assets.cli.terminal import Console
from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.graphrag_settings import REFERENCE, Translation, translate
from graphrag_assets.settings import Settings

_HEAD = """\
# Settings of this index. Commands read them in the folder where they are started; variables of the environment win.
# Lines that begin with # have no effect and show the default.

# Keys: the provider's own variable, or one for the server of _CHAT_BASE_URL or _EMBEDDING_BASE_URL
# OPENAI_API_KEY=
"""
_NEXT = """\
  edit .env                  # models; without one, the embedded default
  graphrag-assets doctor     # whether the models answer
  graphrag-assets index plan # what the index will cost
  graphrag-assets index
  graphrag-assets query ask "…"
"""
_PLAIN = re.compile(r"(?:[\w./:@%+,=-]|\$\{\w+\})*")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option(
    "--from",
    "settings_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A settings.yaml of GraphRAG 2 or 3, to be translated.",
)
@click.option("--force", is_flag=True, help="Replace an existing .env.")
def init(folder: Path, settings_file: Path | None, force: bool) -> None:
    """Write a commented .env and create the input folder in FOLDER, the current one by default."""
    translation = _translation(settings_file) if settings_file else Translation({}, [])
    file = folder / ".env"
    if file.exists() and not force:
        raise InputError(f"{file} exists. Choose another folder, or replace it with --force.")
    file.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(env_text(translation))
    steps = [f"  cd {folder}"] if folder.resolve() != Path.cwd() else []
    if "GRAPHRAG_INPUT" not in translation.variables:
        (folder / "data" / "input").mkdir(parents=True, exist_ok=True)
        steps.append("  put documents in data/input/")
    if settings_file:
        Console().say(f"Translated {settings_file}. Not translated: {', '.join(translation.left) or 'nothing'}.")
    Console().say("\n".join([f"Written: {file}, readable by you alone.", "Next:", *steps, _NEXT.rstrip()]))


def env_text(translation: Translation) -> str:
    """Return the text of `.env`: translated variables, and the other settings with their defaults as comments."""
    variables = dict(translation.variables)
    settings = [_setting(name, variables.pop(f"GRAPHRAG_{name.upper()}", None)) for name in Settings.model_fields]
    lines = [f"# Not translated: {' '.join(key.split())}" for key in translation.left]  # each in one line
    # References are resolved by what stands above them.
    keys = [f"{name}={_quoted(value)}" for name, value in variables.items()]
    return "\n".join([_HEAD, *keys, *settings, *lines, ""])


def _setting(name: str, value: str | None) -> str:
    option = Settings.model_fields[name]
    default = "" if option.default is None else str(option.default)
    line = f"GRAPHRAG_{name.upper()}={_quoted(default if value is None else value)}"
    return f"# {option.description}\n{'# ' if value is None else ''}{line}"


def _quoted(value: str) -> str:
    """Return a value as python-dotenv reads it."""
    return value if _PLAIN.fullmatch(value) else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _translation(path: Path) -> Translation:
    """Return the settings in a file, and the variables of GraphRAG's `.env` that they refer to, first.

    Raises:
        InputError: the file is not valid YAML, or has no settings of GraphRAG 2 or 3.
    """
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)  # without the line itself, which may hold a key
        raise InputError(f"{path}{f', line {mark.line + 1}' if mark else ''} is not valid YAML.") from None
    if not isinstance(config, Mapping):
        raise InputError(f"{path} has no settings of GraphRAG.")
    translation = translate(config, path.parent)
    theirs = dotenv_values(path.parent / ".env")
    names = {name for value in translation.variables.values() for name in REFERENCE.findall(value)}
    copied = {name: theirs[name] or "" for name in sorted(names & theirs.keys())}
    return Translation(copied | translation.variables, translation.left)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dev(arguments: tuple[str, ...]) -> None:
    """Start the Dagster UI of this index on http://127.0.0.1:3000. ARGUMENTS are those of `dagster dev`."""
    from graphrag_assets.assets.run_in_process import make_home  # imports Dagster

    home = make_home(Settings.load())
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")  # Dagster announces successors of its commands
    workspace = home / "workspace.yaml"
    location = ("-w", str(workspace)) if workspace.exists() else ("-m", "graphrag_assets.definitions")
    os.execv(sys.executable, [sys.executable, "-m", "dagster", "dev", *location, *arguments])
