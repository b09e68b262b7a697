"""Eight writers, runs launched as the Dagster UI does, and eight readers at the same time, each in its own process.

    python -m tests.soak.load write 3 600   # write the batch w3 and index it, for 600 seconds
    python -m tests.soak.load read 3 600

A batch is one file with two rows of the same version. A reader that sees two versions has seen half a commit.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphrag_assets.query import GraphRAG
from tests.comparison import SENTENCES, assert_published, index_at, no_settings
from tests.dagster_dev import dagster_dev
from tests.model_index import PROJECT
from tests.soak.summary import DEADLINE, Summary, run_command

PROCESSES = 8
RUN_DEADLINE = 3 * DEADLINE
"""Seconds of a run of the UI, each stage of which waits in line behind the writers."""
HALF_COMMITTED = """
SELECT batch FROM documents GROUP BY batch
HAVING count(DISTINCT regexp_extract(text, 'Version (\\d+)\\.', 1)) <> 1 OR count(*) <> 2
"""
DANGLING = """
SELECT id FROM relationships WHERE source_id NOT IN (SELECT id FROM entities) OR target_id NOT IN (SELECT id FROM entities)
UNION ALL SELECT id FROM text_units WHERE document_id NOT IN (SELECT id FROM documents)
UNION ALL SELECT id FROM communities WHERE community NOT IN (SELECT community FROM community_members)
"""
LAUNCH = """
mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


def write(number: int) -> None:
    """Write the next version of a batch, and index it by the command."""
    from tests.cli import run_command as run_in_process

    file = Path(os.environ["GRAPHRAG_INPUT"]) / f"w{number}" / "rows.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    version = time.monotonic_ns()
    sentences = [SENTENCES[(number * 7 + place + version) % len(SENTENCES)] for place in range(4)]
    rows = [{"id": i, "text": f"Version {version}. {sentences[2 * i]} {sentences[2 * i + 1]}"} for i in range(2)]
    draft = file.parent.parent.parent / f"w{number}.draft"
    draft.write_text("\n".join(map(json.dumps, rows)))
    draft.replace(file)
    run_in_process("index", "--batch", f"w{number}")


def read(number: int) -> None:
    """What the current publication holds belongs together, and it answers."""
    with GraphRAG() as rag:
        assert rag.sql(HALF_COMMITTED).is_empty(), "half of a commit is published"
        assert rag.sql(DANGLING).is_empty(), "the publication does not hold together"
        assert rag.local("Who sailed with the Great Eastern?").answer
    time.sleep(0.5)  # readers without a pause would take all cores from the writers


def repeat(work: Callable[[int], None], number: int, seconds: float) -> None:
    """Repeat until the time is over; print the number of repetitions and all errors."""
    end, done, errors = time.monotonic() + seconds, 0, Counter[str]()
    while time.monotonic() < end:
        try:
            work(number)
            done += 1
        except Exception as error:
            errors[f"{type(error).__name__}: {error}"[:1000]] += 1
            time.sleep(0.1)
    print(json.dumps({"done": done, "errors": errors}))


def soak_load(summary: Summary, minutes: float) -> None:
    """Writers, readers and runs of the UI for so many minutes; at the end the index is complete."""
    with tempfile.TemporaryDirectory(prefix="load-") as name, pytest.MonkeyPatch.context() as patch:
        root = Path(name)
        no_settings(patch)
        index = index_at(root, patch)
        patch.setenv("GRAPHRAG_INPUT", str(root / "input"))
        write(0)
        with dagster_dev(root, root / "input") as url:
            patch.setenv("DAGSTER_HOME", "")
            kinds = [kind for kind in ("write", "read") for _ in range(PROCESSES)]
            processes = [start(kind, number % PROCESSES, 60 * minutes) for number, kind in enumerate(kinds)]
            began = time.monotonic()
            while time.monotonic() < began + 60 * minutes:
                status = launch(url, "update_index")
                summary.counts[f"concurrent: runs of the UI, {status.lower()}"] += 1
                if not summary.check(status == "SUCCESS", f"a run of the UI ended with {status}"):
                    time.sleep(5)
            summary.counts["concurrent: seconds"] += round(time.monotonic() - began)
            for kind, process in zip(kinds, processes, strict=True):
                collect(summary, kind, process)
        status, output = run_command(summary, "never", "index")
        summary.check(status == 0, f"`index` after the writers ends with {status}: {output[-2000:]}")
        assert_published(index)
        log = (root / "dagster-dev.log").read_text(errors="replace")
        summary.counts["concurrent: lock errors"] += count_lock_errors(log)
        summary.check(not count_lock_errors(log), f"lock errors: {log[-2000:]}")
    for kind in ("writers", "readers"):
        summary.require(f"concurrent: {kind}", PROCESSES)
    summary.require("concurrent: runs of the UI, success", 1)
    summary.require("concurrent: seconds", 60 * minutes)
    for errors in ("errors", "lock errors"):
        summary.require(f"concurrent: {errors}", at_most=0)


def count_lock_errors(text: str) -> int:
    return text.count("Could not set lock") + text.count("stayed locked")


def start(kind: str, number: int, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.soak.load", kind, str(number), f"{seconds:.0f}"]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def collect(summary: Summary, kind: str, process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=DEADLINE)
    report = next((line for line in output.splitlines() if line.startswith('{"done"')), None)
    if not summary.check(report is not None, f"a process that was to {kind} ended without a report: {output[-2000:]}"):
        return
    found = json.loads(report or "{}")
    errors = found["errors"]
    summary.counts.update({f"concurrent: {kind}s": found["done"], "concurrent: errors": sum(errors.values())})
    summary.counts["concurrent: lock errors"] += count_lock_errors(str(errors))
    summary.counts[f"concurrent: {kind.removesuffix('e')}ers"] += found["done"] > 0
    summary.check(not errors, f"errors of a process that was to {kind}: {errors}")


def launch(url: str, job: str) -> str:
    """Launch a run as the UI does, and wait for its end."""
    selector = {
        "repositoryLocationName": "graphrag_assets",
        "repositoryName": "__repository__",
        "jobName": job,
    }
    launched = graphql(url, LAUNCH, params={"selector": selector, "runConfigData": {}})["launchRun"]
    if "run" not in launched:
        return str(launched)
    statuses = poll(url, launched["run"]["runId"])
    return next((status for status in statuses if status in ("SUCCESS", "FAILURE", "CANCELED")), "HANGS")


def poll(url: str, run_id: str) -> Iterator[str]:
    end = time.monotonic() + RUN_DEADLINE
    while time.monotonic() < end:
        yield graphql(url, STATUS, id=run_id)["runOrError"]["status"]
        time.sleep(1)


def graphql(url: str, query: str, **variables: object) -> dict:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    return answer["data"]


if __name__ == "__main__":
    _, kind, number, seconds = sys.argv
    repeat({"write": write, "read": read}[kind], int(number), float(seconds))
