"""Hostile inputs: mutations of files of every supported format, and the zoo of `tests/hostile/test_input_zoo.py`."""

import io
import json
import math
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest

from tests.comparison import index_at, no_settings
from tests.defs.test_secrets import everything
from tests.hostile.test_input_zoo import ZOO
from tests.soak.summary import SECRETS, Summary, run_command

ROWS = [
    {"id": "1", "title": "The cable", "text": "Cyrus Field met William Thomson in Valentia.", "year": "1866"},
    {"id": "2", "title": "The ship", "text": "James Anderson commanded the Great Eastern.", "year": "1865"},
]
TEXT = " ".join(row["text"] for row in ROWS)
GOOD = "Samuel Canning sailed with Robert Halpin from Valentia to Newfoundland in 1866."
BATCH_SIZE, BATCHES_PER_RUN = 10, 3


def in_memory(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def separated(separator: str) -> bytes:
    return "\n".join(separator.join(line) for line in [ROWS[0].keys(), *(row.values() for row in ROWS)]).encode()


def zipped(**files: str) -> bytes:
    def write(buffer: io.BytesIO) -> None:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)

    return in_memory(write)


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
PDF = (
    "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n"
    "3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>> endobj\n"
    f"4 0 obj <</Length {len(TEXT) + 27}>> stream\nBT /F 9 Tf 9 9 Td ({TEXT}) Tj ET\nendstream endobj\n"
    "5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj\ntrailer <</Root 1 0 R>>\n%%EOF"
)
SEEDS: dict[str, bytes] = {
    "txt": TEXT.encode(),
    "md": f"# The cable\n\n{TEXT}\n\n## The ship\n\n{TEXT}".encode(),
    "csv": separated(","),
    "tsv": separated("\t"),
    "json": json.dumps(ROWS).encode(),
    "jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "parquet": in_memory(pl.DataFrame(ROWS).write_parquet),
    "html": f"<html><body><h1>The cable</h1><p>{TEXT}</p></body></html>".encode(),
    "docx": zipped(
        **{
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" '
            'ContentType="application/xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="a" Type="{OFFICE}" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>{TEXT}</w:t></w:r></w:p>'
            "</w:body></w:document>",
        }
    ),
    "pptx": zipped(**{"[Content_Types].xml": "<Types/>", "ppt/presentation.xml": "<presentation/>"}),
    "pdf": PDF.encode(),
}
PIECES = (
    b"",
    b"\0" * 100,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    "\u202e\u200b\ufeff\u0301".encode() * 50,
    b"\xed\xa0\x80",  # a lone surrogate
    b'"' * 999,
    b"[" * 50_000,
    b'{"text": ' * 5_000,
    b"<div>" * 20_000,
    b"a" * 300_000,
    b"\r" * 999,
    b"1e999, NaN, -0, 99999999999999999999999999",
    b"<|endoftext|> {{ 7 * 7 }} '; DROP TABLE documents; --",
    b"../../../etc/passwd\n=cmd|' /C calc'!A0\n[bold]",
    "𝕮𝖆𝖇𝖑𝖊 ﷽ 🏴‍☠️".encode() * 200,
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """`data` after one to three changes: cut, flipped, doubled, or with something strange in it."""
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data = data[:place]
            case 1:
                flipped = bytearray(data)
                for _ in range(min(len(data), 20)):
                    flipped[chance.randrange(len(data))] = chance.randrange(256)
                data = bytes(flipped)
            case 2:
                data = data[:place] + data[:place][-5_000:] + data[place:]
            case _:
                data = data[:place] + chance.choice(PIECES) + data[place:]
    return data


def write_hostile_batch(folder: Path, chance: random.Random) -> None:
    """So many hostile files and a good one. One in ten has the ending of another format."""
    folder.mkdir(parents=True)
    for number in range(BATCH_SIZE):
        kind = chance.choice(list(SEEDS))
        ending = kind if chance.random() < 0.9 else chance.choice(list(SEEDS))
        (folder / f"{number}.{ending}").write_bytes(mutated(SEEDS[kind], chance))
    (folder / "good.txt").write_text(GOOD)


def soak_inputs(summary: Summary, number: int, seed: int) -> None:
    """Index at least so many hostile inputs in runs of three batches, each run with a part of the zoo."""
    chance, makers = random.Random(seed), list(ZOO)
    for run in range(math.ceil(number / (BATCH_SIZE * BATCHES_PER_RUN + 1))):
        with tempfile.TemporaryDirectory(prefix="inputs-", ignore_cleanup_errors=True) as name:
            root = Path(name)
            batches = [f"hostile-{place}" for place in range(BATCHES_PER_RUN)]
            for batch in batches:
                write_hostile_batch(root / "input" / batch, chance)
            zoo = makers[run % len(makers)]
            (root / "input" / "zoo").mkdir()
            (root / "input" / "zoo" / "good.txt").write_text(GOOD)
            zoo(root / "input" / "zoo")
            before = len(summary.violations)
            _index(summary, root, [f"{batch}/good.txt" for batch in [*batches, "zoo"]])
            summary.counts["hostile inputs"] += BATCH_SIZE * BATCHES_PER_RUN + 1
            summary.tell(f"hostile inputs, run {run}, with {zoo.__name__}")
            if len(summary.violations) > before:
                kept = Path(tempfile.mkdtemp(prefix="hostile-inputs-"))
                shutil.copytree(root / "input", kept, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
                summary.tell(f"the inputs are kept in {kept}")
    summary.require("hostile inputs", number)


def _copy(source: str, target: str) -> None:
    if Path(source).is_file() and Path(source).stat().st_size < 10**9:
        shutil.copyfile(source, target)


def _index(summary: Summary, root: Path, good: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        no_settings(patch)
        index = index_at(root, patch)
        patch.setenv("GRAPHRAG_CHAT_API_KEY", SECRETS[0])
        status, output = run_command(summary, "never", "index")
        if not summary.check(status == 0, f"hostile inputs end `index` with {status}: {output[-3000:]}"):
            return
        with duckdb.connect(str(index.database.parent / "graphrag.duckdb"), read_only=True) as connection:
            found = {source for (source,) in connection.execute("SELECT source FROM documents").fetchall()}
            ((errors,),) = connection.execute("SELECT count(*) FROM index_errors").fetchall()
        summary.counts["hostile inputs refused by index_errors"] += errors
        summary.check(set(good) <= found, f"good documents are missing: {set(good) - found}")
        for place, content in everything(SimpleNamespace(root=index.database.parent)).items():
            for secret in SECRETS:
                summary.check(secret not in content, f"secret in {place}")
        again = run_command(summary, "never", "index")
        summary.check(again[0] == 0, f"`index` after hostile inputs ends with {again[0]}: {again[1][-2000:]}")
