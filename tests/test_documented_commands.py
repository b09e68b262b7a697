"""Every command in the README and the guides is run: here, in one project on the sample corpus, or by another test.

A block is run line by line. This project's own commands run in this process, so that the whole takes seconds.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from click.testing import CliRunner

from graphrag_assets.cli import main
from tests.conftest import SAMPLE_INPUT, IndexFolder
from tests.test_docs import ROOT


class Block(NamedTuple):
    """A fenced block: its page, its language, its text."""

    page: str
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.strip().partition("\n")[0].strip()

    @property
    def is_shell(self) -> bool:
        return self.language in SHELL or (not self.language and bool(COMMAND.match(self.first_line)))


SHELL = {"bash", "sh", "shell", "console"}
COMMAND = re.compile(
    r"(\.venv/bin/|python3? |export |[A-Z_]+=\S+ |(graphrag-assets|source|make|git|sudo|cd|celery|docker|duckdb|dagster|dg|deploy|npm|pip|curl|find|cp|rm)\b)"
)

# Whole languages of a page that a test of the page runs.
COVERED = {
    ("README.md", "python"),
    ("README.md", "sql"),
    ("docs/dagster.md", "python"),
    ("docs/exchange.md", "console"),
    ("docs/exchange.md", "python"),
    ("docs/models.md", "console"),
    ("docs/models.md", "sql"),
    ("docs/query.md", "pycon"),
    ("docs/query.md", "python"),
    ("docs/sql.md", "python"),
    ("docs/sql.md", "sql"),
}
# The beginnings of blocks that are not run here: servers, other machines, and what a test of the feature runs.
ELSEWHERE = (
    "pip install -e '.[server]'",
    "graphrag-assets serve --host 0.0.0.0 --public-url https",
    "docker compose --file deploy/compose.yaml --env-file .e",
    "graphrag-assets init my-index --from ~/graphrag/setting",
    "graphrag-assets import --remove imported-output --docum",
    "export NEO4J_PASSWORD=…",
    "GRAPHRAG_AUTOMATION=on graphrag-assets dev",
    "dg scaffold defs graphrag_assets.GraphRagComponent papers",
    "sudo apt-get install --yes postgresql python3-venv",
    "cd /opt/graphrag_assets",
    "cp deploy/.env.example .env",
    "sudo install --directory --owner=graphrag --mode=700 /s",
    "sudo systemctl stop graphrag-daemon graphrag-webserver ",
    "export COMPOSE_FILE=deploy/compose.yaml COMPOSE_ENV_FIL",
    "docker buildx imagetools inspect python:3.13.7-slim-boo",
    "# Logs of runs, after 90 days.",
    "sudo -u graphrag psql --dbname=dagster --command='VACUU",
    "celery --app dagster_celery.app worker --queues extract",
    "dagster job backfill --module-name graphrag_assets.defi",
    "dagster asset wipe ",
    "pip install -e '.[server]' && graphrag-assets serve",
    "$ graphrag-assets evaluate docs/questions.jsonl --answers",
    "cd examples/dbt",
    "duckdb -readonly data/index/graphrag.duckdb",
    "graphrag-assets sql \"FROM neighbors('Great Eastern')\"",
    'GRAPHRAG_TEXT_COLUMN="mail/*=body, *.xlsx=*, text"',
    "export GRAPHRAG_CHAT_MODEL=openai/gpt-4.1-mini  ",
    "graphrag-assets doctor ",
    "export GRAPHRAG_EMBEDDING_MODEL=onnx:bge-small",
    "export GRAPHRAG_CHAT_MODEL=openai/gpt-4.1-mini GRAPHRAG",
)


def _blocks() -> Iterator[Block]:
    for page in ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))):
        text = (ROOT / page).read_text(encoding="utf-8")
        for language, body in re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            yield Block(page, language, body)


BLOCKS = list(_blocks())
RUN = [
    block
    for block in BLOCKS
    if (block.is_shell or block.language in ("python", "sql"))
    and (block.page, block.language) not in COVERED
    and not block.first_line.startswith(ELSEWHERE)
]


class Workshop:
    """A project folder like a fresh clone, and a shell for the commands of the documents."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, patch
        self.names: dict[str, object] = {}
        self.session: duckdb.DuckDBPyConnection | None = None

    def prepare(self) -> None:
        """The files of a clone."""
        shutil.copytree(SAMPLE_INPUT, self.root / "data/input")
        for name in ("docs", "Makefile", "deploy"):
            (self.root / name).symlink_to(ROOT / name)

    def add_documents(self) -> None:
        """The input that the README draws: batches of two years, and a file whose rows are documents."""
        self.write("data/input/reports-2024/a.txt", "Cyrus Field reported to the shareholders in London.")
        self.write("data/input/reports-2025/a.txt", "Daniel Gooch reported to the shareholders in London.")
        self.write("data/input/letters.csv", "id,title,text\n1,To Field,William Thomson wrote to Cyrus Field.\n")
        self.write("home/documents/mine/a.txt", "Robert Halpin sailed from Valentia with Daniel Gooch.")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def start_page(self, page: str) -> None:
        """A new terminal, in the project's folder."""
        self.names, self.session = {}, None
        for name in [name for name in os.environ if name.startswith("GRAPHRAG_") or name == "DAGSTER_HOME"]:
            self.patch.delenv(name)
        if page == "docs/dagster.md":  # it compares three publications
            for name in ("Samuel Canning", "Daniel Gooch"):
                self.write("data/input/reports-2024/a.txt", f"{name} reported to the shareholders in London.")
                IndexFolder(self.root / "data").index_all()

    def run(self, block: Block) -> str:
        """The output of the block."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if block.language == "python":
                exec(compile(block.text, block.page, "exec"), self.names)
            elif block.language == "sql":
                self.query(block.text)
            else:
                lines = block.text.replace("\\\n", " ").splitlines()
                return "".join(self.command(part) for line in lines for part in line.split(" && "))
        return printed.getvalue()

    def query(self, text: str) -> None:
        """Run statements where the page has opened a database, or else on the publication."""
        if self.session:
            self.session.execute(text)
            return
        with duckdb.connect(str(self.root / "data/index/graphrag.duckdb"), read_only=True) as connection:
            connection.execute(text)

    def command(self, line: str) -> str:
        words = shlex.split(line, comments=True)
        output = Path(words.pop()) if len(words) > 1 and words[-2] == ">" else None
        if output:
            words.pop()
        match words:
            case [] | ["cd", *_] | ["source", _]:
                return ""
            case ["export", *settings]:
                for setting in settings:
                    name, _, value = setting.partition("=")
                    self.patch.setenv(name, value.replace("~", str(self.root / "home"), 1))
                return ""
            case ["make", target]:
                return "".join(self.command(recipe) for recipe in _recipe(target))
            case ["graphrag-assets" | ".venv/bin/graphrag-assets", *arguments]:
                done = CliRunner().invoke(main, arguments)
                assert done.exit_code == 0, f"{line}\n{done.output}{done.exception!r}"
                if output:
                    output.write_text(done.output, encoding="utf-8")
                return done.output
            case [".venv/bin/python" | "python", "-c", code]:
                exec(code, {})
                return ""
            case ["duckdb", "-init", script]:
                self.session = duckdb.connect()
                self.session.execute(Path(script).read_text(encoding="utf-8"))
                return ""
        raise AssertionError(f"No test runs this: {line}. Add it here, or list the block in ELSEWHERE.")


def _recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile, without its prerequisites."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^{target}:[^\n]*\n((?:\t[^\n]*\n)+)", text, re.MULTILINE)
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in body.splitlines()]


@pytest.mark.extended
def test_blocks_run_in_sequence(tmp_path, monkeypatch) -> None:
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("webbrowser.open", lambda *_: True)
    monkeypatch.chdir(tmp_path)
    workshop = Workshop(tmp_path, monkeypatch)
    workshop.prepare()
    printed: dict[str, str] = {}
    page = ""
    for block in RUN:
        if block.page != page:
            page = block.page
            workshop.start_page(page)
        printed[f"{page}: {block.first_line}"] = workshop.run(block)
        if "make demo" in block.text:
            workshop.add_documents()
    demo = " ".join(printed["README.md: make demo"].split())
    shown = next(b.text for b in BLOCKS if b.first_line.startswith("Who commanded"))
    for line in shown.strip().splitlines()[1:]:
        assert " ".join(line.strip(" …").split()) in demo
