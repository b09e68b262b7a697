"""The commands of docs/models.md, with a server in place of the model that answers by rules."""

import functools
import json
import os
import re
import shlex
import shutil

import pytest

from graphrag_assets.embedded.extractor import extract_unit
from tests.cli import run_command
from tests.conftest import SAMPLE_INPUT
from tests.openai_content import asked_of, content_for, fenced_text, task_of
from tests.openai_server import running
from tests.test_docs import blocks

GUIDE = "docs/models.md"
TYPES = {"PERSON": "person", "ORGANIZATION": "company", "GEO": "place", "EVENT": "event"}
SHIPS = {"Niagara", "Agamemnon", "Great Eastern", "Albany", "Terrible", "Medway", "Gorgon", "Valorous", "Susquehanna"}
MEANINGS = {
    "PERSON": "an engineer, scientist, officer, promoter or financier of the cables",
    "PLACE": "a landing place, port, works, town or region on the routes of the cables",
    "COMPANY": "a firm, society, committee or public office that made, paid for or examined cables",
    "SHIP": "a vessel that carried, laid, escorted or searched for a cable",
}


_extracted = functools.cache(extract_unit)


def type_of(title: str, kind: str) -> str:
    if title.removeprefix("HMS ").removeprefix("USS ") in SHIPS:
        return ("ship", "steam ship")[len(title) % 2]
    return TYPES.get(kind, "")


def content(body: dict) -> str:
    """What the embedded default extracts, with types of its own choice."""
    if task_of(body) == "CorpusDescription":
        definitions = [{"type": kind, "definition": meaning} for kind, meaning in MEANINGS.items()]
        return json.dumps(
            {
                "domain": "The making and laying of the Atlantic telegraph cables of 1857 to 1866.",
                "persona": "You are a historian of telegraphy who knows ships, companies and engineers of the 1850s "
                "and 1860s.",
                "rating_scale": "0: a name in passing; 10: decided whether a cable was laid or worked.",
                "definitions": definitions,
            }
        )
    if not task_of(body).startswith("ExtractGraph"):
        return content_for(body)
    asked = "\n".join(asked_of(body))
    if "<listed " in asked:
        return json.dumps({"entities": [], "relationships": [], "claims": []})
    found = _extracted(fenced_text(asked))
    entities = [
        {"name": e.title, "type": type_, "description": e.description}
        for e in found.entities
        if (type_ := type_of(e.title, e.type))
    ]
    names = {entity["name"] for entity in entities}
    relationships = [
        {"source": r.source, "target": r.target, "type": r.type, "description": r.description, "strength": 5}
        for r in found.relationships
        if r.type and {r.source, r.target} <= names
    ]
    return json.dumps({"entities": entities, "relationships": relationships, "claims": []})


@pytest.mark.extended
def test_commands_of_the_guide_print_the_output_it_shows(sample_index, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
    shutil.copytree(sample_index.root / "index", tmp_path / "data" / "index", symlinks=True)
    monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    monkeypatch.setenv("GRAPHRAG_CHAT_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    with running(content=content) as server:
        for block in blocks(GUIDE, "console"):
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                if command.startswith("export "):
                    name, value = command.removeprefix("export ").split("=")
                    monkeypatch.setenv(name, value)
                    monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", server.url)
                    continue
                output = run_command(*shlex.split(command.removeprefix("graphrag-assets ")), COLUMNS="100")
                printed = iter([line.strip() for line in output.splitlines()])
                for line in (line.strip() for line in shown.splitlines() if line.strip() not in ("", "…")):
                    assert any(re.fullmatch(_any_time(line), other) for other in printed), (
                        f"{line!r} is not in\n{output}"
                    )


def _any_time(line: str) -> str:
    return re.sub(r"\d{4}\\-\d\d\\-\d\d\\ \d\d:\d\d", r"[-\\d]+ [:\\d]+", re.escape(line))
