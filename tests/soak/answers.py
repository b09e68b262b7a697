"""Hostile answers of a model server: the lists of `tests/hostile/test_lying_server.py`, and the faults of `openai_server`.

The lie is told for documents with its mark; everything else is answered honestly.
"""

import json
import math
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphrag_assets.indexing.index import Index
from tests.comparison import index_at, no_settings
from tests.hostile.test_lying_server import CHATS, USAGES, VECTORS, chat
from tests.limits import limit_calls
from tests.openai_content import content_for
from tests.openai_server import FAULTS, Body, FaultPlan, OpenAIServer, running
from tests.soak.histories import use_models
from tests.soak.inputs import GOOD
from tests.soak.summary import Summary, run_command

MARK = "liarliar{}end"
TOGETHER = 5
N_GOOD = """
SELECT count(DISTINCT m.text_unit_id) FROM entity_mentions m JOIN text_units t ON t.id = m.text_unit_id
WHERE t.batch = 'good'
"""
UNDONE = "SELECT count(*) FROM index_errors"


def soak_answers(summary: Summary, number: int, seed: int) -> None:
    """So many hostile answers: 60 % chats in groups, since each spoils a document; faults; then vectors one by one, since
    each spoils a run."""
    chance = random.Random(seed)
    chats = chance.sample([*CHATS, *USAGES], min(math.ceil(0.6 * number), len(CHATS) + len(USAGES)))
    vectors = chance.sample(list(VECTORS), len(VECTORS))
    with running(slow_seconds=2.0, retry_after=0.5) as server:
        chats.sort(key=lambda name: "Retry-After" in str(CHATS.get(name)))  # waited for together
        for start in range(0, len(chats), TOGETHER):
            tell_lies(summary, server, chats[start : start + TOGETHER])
        server.faults = FaultPlan(dict.fromkeys(FAULTS, 0.3 / len(FAULTS)), seed)
        tell_lies(summary, server, list(FAULTS))
        while vectors and (summary.counts["hostile answers"] < number or not summary.counts["hostile vectors"]):
            tell_lies(summary, server, [vectors.pop()])
            summary.counts["hostile vectors"] += 1
    summary.require("hostile answers", number)
    summary.require("hostile vectors", 1)


def tell_lies(summary: Summary, server: OpenAIServer, names: Sequence[str]) -> None:
    """Index with the lies, then honestly: the first run ends in order, the second with everything."""
    with tempfile.TemporaryDirectory(prefix="answers-") as root, pytest.MonkeyPatch.context() as patch:
        no_settings(patch)
        index = index_at(Path(root), patch)
        use_models(patch.setenv, server.url)
        limit_calls(patch, max_retries=0)
        patch.setenv("GRAPHRAG_REQUEST_TIMEOUT", "10")
        patch.setattr("graphrag_assets.indexing.checks.MAX_FAILED_SHARE", 1)
        write_documents(Path(root) / "input", len(names))
        server.replace = lambda body: reply(body, names)
        status, _ = run_command(summary, "never", "index")
        if server.faults.shares:  # a fault can meet any request
            server.faults = FaultPlan()
        else:
            summary.check(index.working.read(N_GOOD).item() == 3, f"good documents are not extracted beside {names}")
        server.replace = None
        again, output = run_command(summary, "never", "index")
        summary.check(again == 0, f"after the lies {names} the index ends with {again}: {output[-2000:]}")
        summary.check(is_complete(index), f"after the lies {names} something is left undone")
        told = [name for name in names if name not in FAULTS or server.counts[f"fault {name}"]]
        summary.counts["hostile answers"] += len(told)
        summary.tell(f"hostile answers, status {status} and then {again}: {', '.join(told)}")


def write_documents(folder: Path, n_lies: int) -> None:
    for batch in ("good", "lies"):
        (folder / batch).mkdir(parents=True)
    for number in range(3):
        (folder / "good" / f"{number}.txt").write_text(f"{GOOD} It was their voyage number {number}.")
    for number in range(n_lies):
        (folder / "lies" / f"{number}.txt").write_text(f"{GOOD} The mark is {MARK.format(number)}.")


def reply(body: Body, names: Sequence[str]) -> tuple[int, dict[str, str], bytes] | None:
    """The lie for a request that has a mark."""
    text, is_chat = json.dumps(body), "messages" in body
    for number, name in enumerate(names):
        if MARK.format(number) not in text:
            continue
        if is_chat and name in CHATS:
            status, headers, content = CHATS[name]
            return status, headers, json.dumps(content).encode()
        if is_chat and name in USAGES:
            return 200, {}, json.dumps(chat(content_for(body), USAGES[name])).encode()
        if not is_chat and name in VECTORS:
            return 200, {}, json.dumps(VECTORS[name]).encode()
    return None


def is_complete(index: Index) -> bool:
    return (index.database.parent / "graphrag.duckdb").exists() and index.working.read(UNDONE).item() == 0
