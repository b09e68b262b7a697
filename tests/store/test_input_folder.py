"""The input folder: what is a batch, which files it has, and when its digest changes."""

import os
from pathlib import Path

import pytest
from upath import UPath

from graphrag_assets.errors import InputError, RefusedFileError
from graphrag_assets.store.input_files import InputFolder, SourceFile, hashed_name


def write(root: Path, *paths: str) -> InputFolder:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"content of {path}".encode())
    return InputFolder(str(root))


def names(folder: InputFolder) -> list[str]:
    return [one.batch for one in folder.list_batches() if not one.error]


def digest(folder: InputFolder, batch: str) -> str:
    return folder.digest(batch, folder.files(batch))


def paths(folder: InputFolder, batch: str) -> list[str]:
    return [file.path for file in folder.files(batch)]


def test_every_entry_is_a_batch_be_it_folder_or_file(tmp_path: Path) -> None:
    folder = write(tmp_path, "b/x.md", "a.txt", "c/d/e.csv")
    assert names(folder) == ["a.txt", "b", "c"]
    assert paths(folder, "a.txt") == ["a.txt"]
    assert paths(folder, "c") == ["c/d/e.csv"]


def test_hidden_and_temporary_entries_do_not_count(tmp_path: Path) -> None:
    ignored = [".DS_Store", ".git/config", "~$report.docx", "x.part", "x.TMP", ".x.swp", "x.swp"]
    folder = write(tmp_path, "b/x.md", *ignored, *(f"b/{name}" for name in ignored))
    assert names(folder) == ["b"]
    assert paths(folder, "b") == ["b/x.md"]


def test_a_name_that_cannot_be_a_partition_key_is_reported_and_others_are_escaped(tmp_path: Path) -> None:
    odd = ["it's", 'a "b"', "100%", "x; DROP TABLE documents", "电缆 😀", "a#b?c", " a "]
    folder = write(tmp_path, "a...b/x.txt", "a\nb/x.txt", "good/x.txt", *(f"{name}/{name}.txt" for name in odd))
    for parent in (tmp_path, tmp_path / "good"):
        (parent / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    assert names(folder) == sorted([r"a\x0ab", r"caf\xe9.txt", "good", *odd])
    assert [paths(folder, name) for name in odd] == [[f"{name}/{name}.txt"] for name in odd]
    assert paths(folder, r"a\x0ab") == [r"a\x0ab/x.txt"]
    assert paths(folder, "good") == [r"good/caf\xe9.txt", "good/x.txt"]
    (problem,) = (one for one in folder.list_batches() if one.error)
    assert problem.batch == "a...b"
    assert repr("a...b") in problem.error
    assert "Rename" in problem.hint


@pytest.mark.parametrize("location", ["missing", "a-file.txt"])
def test_a_folder_that_cannot_be_listed_is_an_error_and_not_empty(tmp_path: Path, location: str) -> None:
    (tmp_path / "a-file.txt").write_text("x")
    folder = InputFolder(str(tmp_path / location))
    for call in (lambda: names(folder), lambda: folder.files("b")):
        with pytest.raises(InputError, match="GRAPHRAG_INPUT"):
            call()


def test_missing_batch_has_no_files(tmp_path: Path) -> None:
    folder = write(tmp_path, "b/x.md", "b/y/z.md", ".hidden/x.md")
    for name in ("nope", "b/y", "..", ".", ".hidden", ""):
        assert paths(folder, name) == []


def test_link_loops_end_and_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "input", "b/x.md")
    write(tmp_path, "elsewhere/y.md")
    (tmp_path / "input/b/again").symlink_to(tmp_path / "input/b")
    (tmp_path / "input/b/up").symlink_to(tmp_path / "input")
    (tmp_path / "input/b/other").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "input/b/within").symlink_to(tmp_path / "input/c")
    write(tmp_path / "input", "c/z.md")
    assert [file.path for file in folder.files("b") if not file.refused] == ["b/within/z.md", "b/x.md"]


def test_a_broken_link_and_a_pipe_are_files_that_cannot_be_read(tmp_path: Path) -> None:
    folder = write(tmp_path, "b/x.md")
    (tmp_path / "b/broken.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(tmp_path / "b/pipe.md")
    broken, pipe, _ = folder.files("b")
    assert broken.path == "b/broken.md"
    with pytest.raises(FileNotFoundError):
        broken.read()
    with pytest.raises(RefusedFileError, match="not a regular file"):
        pipe.read()


def test_digest_depends_on_contents_and_names_only(tmp_path: Path) -> None:
    folder = write(tmp_path, "b/x.md", "b/y.md", "c/z.md")
    before = digest(folder, "b")
    os.utime(tmp_path / "b/x.md", (1, 1))
    write(tmp_path, "b/.DS_Store", "c/new.md")
    assert digest(folder, "b") == before

    (tmp_path / "b/x.md").write_text("edited")
    edited = digest(folder, "b")
    (tmp_path / "b/x.md").rename(tmp_path / "b/renamed.md")
    renamed = digest(folder, "b")
    (tmp_path / "b/renamed.md").unlink()
    assert len({before, edited, renamed, digest(folder, "b")}) == 4


def test_a_file_that_cannot_be_read_is_in_the_digest_until_it_can(tmp_path: Path) -> None:
    folder = write(tmp_path, "b/x.md")
    (tmp_path / "b/late.md").symlink_to(tmp_path / "c/late.md")
    broken = digest(folder, "b")
    write(tmp_path, "c/late.md")
    assert digest(folder, "b") != broken


def test_any_file_system_of_universal_pathlib_serves() -> None:
    for name, content in (("b/sub/x.md", b"hello"), ("a.txt", b"there"), ("b/.hidden", b"")):
        file = UPath("memory://corpus") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    folder = InputFolder("memory://corpus")
    assert names(folder) == ["a.txt", "b"]
    assert [(file.path, file.size, file.read()) for file in folder.files("b")] == [("b/sub/x.md", 5, b"hello")]
    with pytest.raises(InputError, match="missing"):
        names(InputFolder("memory://no-such-corpus"))


@pytest.mark.parametrize(
    "swap", ["not a regular file", "outside of the input folder", "the limit is", "Is a directory"]
)
@pytest.mark.parametrize("use", [SourceFile.read, SourceFile.content_hash])
def test_a_file_that_is_swapped_after_it_was_listed_is_refused(tmp_path: Path, swap: str, use) -> None:
    write(tmp_path / "input", "b/x.md")
    file = tmp_path / "input" / "b" / "x.md"
    (listed,) = InputFolder(str(tmp_path / "input"), max_file_bytes=100).files("b")
    file.unlink()
    match swap:
        case "not a regular file":
            os.mkfifo(file)
        case "outside of the input folder":
            (tmp_path / "secret.txt").write_text("secret")
            file.symlink_to(tmp_path / "secret.txt")
        case "the limit is":
            file.write_bytes(b"x" * 101)
        case _:
            file.mkdir()
    with pytest.raises(OSError, match=swap):
        use(listed)


def test_only_files_of_the_pattern_count(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "a.md", "b/x.txt", "b/txt/y.md", "c/z.md")
    folder = InputFolder(str(tmp_path), pattern=r"\.txt$")
    assert names(folder) == ["a.txt", "b"]
    assert [paths(folder, batch) for batch in ("a.txt", "b", "a.md")] == [["a.txt"], ["b/x.txt"], []]
    assert digest(folder, "b") != digest(InputFolder(str(tmp_path)), "b")


@pytest.mark.parametrize(
    ("batch_by", "batches"),
    [
        ("depth=1", {"2024": ["2024/a/1.md", "2024/a/2.md", "2024/b.md"], "2025.md": ["2025.md"]}),
        ("depth=2", {"2024/a": ["2024/a/1.md", "2024/a/2.md"], "2024/b.md": ["2024/b.md"], "2025.md": ["2025.md"]}),
    ],
)
def test_a_batch_is_what_the_setting_says(tmp_path: Path, batch_by: str, batches: dict[str, list[str]]) -> None:
    write(tmp_path, "2024/a/1.md", "2024/a/2.md", "2024/b.md", "2025.md", "2024/.hidden")
    folder = InputFolder(str(tmp_path), batch_by=batch_by)
    assert names(folder) == list(batches)
    assert {batch: paths(folder, batch) for batch in names(folder)} == batches
    assert {one.batch: [file.path for file in one.files] for one in folder.list_batches()} == batches


def test_many_files_are_few_batches_by_a_hash_and_an_edit_concerns_one(tmp_path: Path) -> None:
    write(tmp_path, *(f"note {number}.md" for number in range(100)))
    folder = InputFolder(str(tmp_path), batch_by="hash=12")
    before = {batch: digest(folder, batch) for batch in names(folder)}
    assert len(before) == 12
    assert sorted(path for batch in before for path in paths(folder, batch)) == sorted(
        file.name for file in tmp_path.iterdir()
    )
    write(tmp_path, "another.md")
    after = {batch: digest(folder, batch) for batch in names(folder)}
    assert {batch for batch in after if after[batch] != before[batch]} == {hashed_name("another.md", 12)}
