"""Files whose conversion takes too long, too much memory, or crashes: each is a row of index_errors, and no process stays."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.source_records import ConversionLimits, LoadOptions, Problem, Record
from tests.reading.packages import docx, paragraph

PAGE = b"<h1>The cable</h1><p>Cyrus Field met William Thomson in Valentia.</p>"

HOSTILE: dict[str, tuple[Callable[[], bytes], ConversionLimits, str]] = {
    "docx": (
        lambda: docx(paragraph("It broke. ") * 2_000_000),
        ConversionLimits(memory_mb=200),
        "converting the docx file took more than 200 MB of memory",
    ),
    "docx that takes long": (
        lambda: docx(paragraph("It broke. ") * 1_000_000),
        ConversionLimits(seconds=2, memory_mb=6000),
        "converting the docx file took more than 2 s",
    ),
    "html": (  # fewer characters than the limit has bytes
        lambda: f"<p>{'Кабель порван. ' * 60_000}</p>".encode(),
        ConversionLimits(),
        "the document has 1.6 MB, the limit is 1.0 MB",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_above_a_limit_is_named_and_the_rest_is_converted(name: str) -> None:
    make, limits, error = HOSTILE[name]
    with ConversionProcess(limits) as convert:
        refused, kept = converted(convert, make(), name.split()[0]), converted(convert, PAGE, "html")
    assert isinstance(refused, Problem)
    assert refused.error == error
    assert "Split" in refused.hint
    assert isinstance(kept, Record)
    assert kept.text.endswith("Cyrus Field met William Thomson in Valentia.")


def test_a_crash_of_the_converter_is_named_and_the_next_file_gets_another_process() -> None:
    others = {*psutil.Process().children()}
    with ConversionProcess(ConversionLimits()) as convert:
        converted(convert, PAGE, "html")
        (worker,) = {*psutil.Process().children()} - others
        worker.send_signal(signal.SIGSEGV)
        while worker.status() != psutil.STATUS_ZOMBIE:  # its end is collected by the one who started it
            time.sleep(0.01)
        problem = converted(convert, PAGE, "html")
        assert isinstance(problem, Problem)
        assert problem.error == "converting the html file ended its process (exit code -11)"
        assert isinstance(converted(convert, PAGE, "html"), Record)


@pytest.mark.extended
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_no_process_outlives_the_one_that_started_it(sent: signal.Signals) -> None:
    program = (
        "import signal\n"
        "from graphrag_assets.reading.process import *\n"
        "from tests.hostile.test_conversion import *\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it\n"
        "with ConversionProcess(ConversionLimits()) as convert:\n"
        "    converted(convert, b'<p>a</p>', 'html'); print('ready', flush=True)\n"
        "    converted(convert, docx(paragraph('It broke. ') * 1_000_000), 'docx')\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert parent.stdout
        assert parent.stdout.readline() == b"ready\n"
        (worker,) = psutil.Process(parent.pid).children()
        time.sleep(0.3)  # into the conversion
        os.killpg(parent.pid, sent) if sent == signal.SIGINT else parent.send_signal(sent)  # Ctrl-C reaches both
        parent.wait(20)
        _, alive = psutil.wait_procs([worker], timeout=10)
        assert alive == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            parent.kill()
        parent.wait(10)


def converted(convert: ConversionProcess, data: bytes, file_format: str) -> Record | Problem:
    """The only document or problem of a file."""
    (item,) = convert(data, file_format, LoadOptions(max_document_bytes=1_000_000))
    return item


def test_no_file_stays_in_the_home_and_temporary_folders(tmp_path, monkeypatch) -> None:
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with ConversionProcess(ConversionLimits()) as convert:
        for data, file_format in ((docx(paragraph("It broke.")), "docx"), (PAGE, "html"), (b"%PDF-1.4\n", "pdf")):
            converted(convert, data, file_format)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["home", "temporary"]
