"""Removes an imported index, or documents of it, or hands documents over to the input folder."""

import uuid
from collections.abc import Sequence
from pathlib import PurePosixPath

import polars as pl
from upath import UPath

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.importer import PREFIX
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import DELETED
from graphrag_assets.pipeline.formats import format_of, is_plain_text
from graphrag_assets.store.imports import replace_documents
from graphrag_assets.store.locks import batch_lock


def remove(index: Index, batch: str, documents: Sequence[str] = ()) -> list[str]:
    """Delete an imported batch, or the documents of it that have one of these titles, sources or ids.

    The next refresh removes what was derived from them from the graph, as with deleted files.

    Returns:
        the titles of the deleted documents.

    Raises:
        InputError: there is no such import, or no such document in it.
    """
    with index.working.exclusive("refresh"), index.working.exclusive(batch_lock(batch)):
        chosen, n_all = _chosen(index, batch, documents)
        _delete(index, batch, chosen, n_all)
    return chosen["title"].to_list()


def hand_over(index: Index, batch: str, documents: Sequence[str] = ()) -> list[str]:
    """Write the documents of an imported batch into the input folder, and delete them from the batch.

    There they can be edited and deleted like any others. The next `index` extracts them again.

    Returns:
        the paths of the files, below the input folder.

    Raises:
        InputError: there is no such import or document, or a different file exists already.
    """
    with index.working.exclusive("refresh"), index.working.exclusive(batch_lock(batch)):
        chosen, n_all = _chosen(index, batch, documents)
        folder = UPath(index.settings.input_folder)
        name = batch.removeprefix(PREFIX) or batch
        paths = [f"{name}/{file}" for file in _file_names(chosen["title"].to_list())]
        files = [(folder / path, text.encode()) for path, text in zip(paths, chosen["text"], strict=True)]
        there = [path for path, (file, content) in zip(paths, files, strict=True) if _is_another(file, content)]
        if there:
            raise InputError(
                f"{there[0]} already exists in the input folder. Move that file, or remove the document from the "
                "import instead."
            )
        for file, content in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        _delete(index, batch, chosen, n_all)
    return paths


def _is_another(file: UPath, content: bytes) -> bool:
    """Whether the file exists with other content; the same content is left by an interrupted hand-over."""
    return file.exists() and not (file.is_file() and file.read_bytes() == content)


def _chosen(index: Index, batch: str, documents: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """The chosen documents (id, title, source, text), and the number of documents in the batch."""
    state = index.working.read("SELECT origin FROM batch_state WHERE batch = $batch", {"batch": batch})
    if state["origin"].drop_nulls().is_empty():
        known = index.working.read("SELECT batch FROM batch_state WHERE origin IS NOT NULL ORDER BY batch")["batch"]
        raise InputError(f"There is no imported batch {batch!r}. Imported: {', '.join(known) or 'nothing'}.")
    rows = index.working.read(
        "SELECT id, title, source, text FROM documents WHERE batch = $batch ORDER BY source, id", {"batch": batch}
    )
    if not documents:
        return rows, rows.height
    names = pl.Series(documents).implode()
    found = rows.filter(pl.any_horizontal(pl.col(column).is_in(names) for column in ("id", "title", "source")))
    named = {*found["id"], *found["title"], *found["source"]}
    if missing := [name for name in documents if name not in named]:
        raise InputError(f"{batch!r} has no document {missing[0]!r}. Give its title, source or id, as in `documents`.")
    return found, rows.height


def _delete(index: Index, batch: str, chosen: pl.DataFrame, n_all: int) -> None:
    digest = DELETED if chosen.height == n_all else stable_id("import", *chosen["id"])
    replace_documents(index.working, batch, chosen["id"], digest, str(uuid.uuid4()))


def _file_names(titles: Sequence[str]) -> list[str]:
    """A distinct file name for each title; text without a known ending becomes .txt."""
    names: list[str] = []
    for title in titles:
        path = PurePosixPath(title.replace("\\", "/").replace("\n", " ")).name.strip(" .") or "document"
        kind = format_of(path)
        stem, ending = (
            (path.rsplit(".", 1)[0], path.rsplit(".", 1)[1]) if kind and is_plain_text(kind) else (path, "txt")
        )
        name, n = f"{stem[:150]}.{ending}", 2
        while name in names:
            name, n = f"{stem[:150]} ({n}).{ending}", n + 1
        names.append(name)
    return names
