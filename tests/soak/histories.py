"""Random histories of an index with real processes, real kills and a local model server that counts paid calls."""

import math
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test

from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.indexing.scan import scan
from graphrag_assets.store.imports import unfinished
from tests.comparison import index_all, index_at
from tests.hostile.history import IMPORTED, IndexHistory
from tests.kills import asked, embedding_key, stored_answers, unstored
from tests.openai_server import OpenAIServer, running
from tests.soak.command import ENDED, KILLED
from tests.soak.summary import SECRETS, Summary, run_command

CONCURRENCY = 5
LONG = ("index", "index one batch", "import", "purge")
CRITICAL = ("publication", "purge", "rollback", "compaction", "import")
MAX_REFUSED = 0.1


class ProcessHistory(IndexHistory):
    """The rules of `IndexHistory`; each operation is a process. What a kill leaves equals a fresh index once completed.

    `last` has the changes of files and the seconds of the last run of each operation that was not killed.
    """

    server: ClassVar[OpenAIServer]
    summary: ClassVar[Summary]
    last: ClassVar[dict[str, tuple[int, float]]] = {}

    def __init__(self) -> None:
        super().__init__()
        use_models(self.patch.setenv, self.server.url)

    def perform(self, operation: str, killed: int | None = None) -> None:
        self.summary.counts["random operations"] += 1
        kills = self.summary.counts["kills"]
        with self.recorded():
            super().perform(operation, killed)
            if self.summary.counts["kills"] > kills:
                self.compare_copy()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record a failure where it happens: kills at a time do not repeat, so Hypothesis may not find it again."""
        try:
            yield
        except Exception as error:
            after = ", ".join(self.performed)
            self.summary.check(False, f"{type(error).__name__}: {error}, after {after}: {traceback.format_exc()}")
            raise

    def run(self, operation: str, killed: int | None = None) -> str:
        arguments, index_folder = self.arguments(operation), self.index_folder
        self.server.requests.clear()
        stored = stored_answers(index_folder)
        status, output = run_command(self.summary, *self.end(operation, killed), *arguments)
        while self.server.in_flight:  # nobody receives these answers
            time.sleep(0.01)
        self.count(operation, status, output)
        self.account(operation, status == -9, stored)
        if status in (0, -9):
            return ""
        return " ".join(output[output.find("Error: ") :].split()) or f"status {status}"

    def end(self, operation: str, killed: int | None) -> list[str]:
        """When the process ends: never before its work is done, at a change of files, or after some time."""
        if killed is None:
            return ["never"]
        changes, seconds = self.last.get(operation, (8, 2.0))
        if operation not in LONG or killed % 3 == 0:
            return ["change", str(killed % max(changes, 1))]
        if killed % 3 == 1:
            return ["publication", str(killed // 6)]
        return ["second", f"{seconds * killed / 40:.2f}"]

    def arguments(self, operation: str) -> list[str]:
        match operation:
            case "index one batch":
                return ["index", *(f"--batch={batch}" for batch in scan(self.index).due[:1])]
            case "purge":
                return ["publications", "purge"]
            case "roll back":
                return ["publications", "rollback", "oldest"]
            case "import":
                return ["import", str(self.small)]
            case "remove the import":
                return ["import", "--remove", IMPORTED]
        return [operation]

    def count(self, operation: str, status: int, output: str) -> None:
        outcome = {0: "done", -9: "killed"}.get(status, "refused")
        phase = output.rpartition(KILLED)[2].partition("\n")[0] if status == -9 else ""
        if status == 0:
            changes, seconds = output.rpartition(ENDED)[2].split()[:2]
            self.last[operation] = int(changes), float(seconds)
        self.summary.counts.update(["operations", f"operations: {operation}, {outcome}"])
        self.summary.counts["operations refused"] += outcome == "refused"
        if status == -9:
            self.summary.counts.update(["kills", f"kills: {phase}"])
            self.summary.counts["kills: critical"] += phase in CRITICAL
        self.summary.tell(f"{operation}: {outcome} {phase}".rstrip())

    def account(self, operation: str, was_killed: bool, before: set[tuple[str, str]]) -> None:
        """Requests are paid once: only those in flight at a kill are lost."""
        sent = asked(self.server)
        lost = unstored(sent, before, stored_answers(self.index_folder))
        known = {key for kind, key in before if kind == "embedding"}
        repeated = sum(
            embedding_key(text) in known
            for request in sent
            if "input" in request.body
            for text in request.body["input"]
        )
        if not was_killed:
            repeated += lost
        self.summary.counts.update({"calls": len(sent), "calls lost in flight": lost if was_killed else 0})
        self.summary.counts.update({"calls repeated": repeated})
        self.summary.check(not repeated, f"{operation} repeated {repeated} of {len(sent)} calls")
        self.summary.check(lost <= 2 * CONCURRENCY, f"{operation}, killed, lost {lost} of {len(sent)} calls")

    def compare_copy(self) -> None:
        """Complete a copy of what a kill has left, and compare it; the history goes on with the original."""
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            made = index_at(Path(folder), self.patch)
            shutil.copytree(self.index_folder, made.database.parent, symlinks=True)
            if made.database.exists() and unfinished(made.working).height:
                import_index(made, self.small)
            index_all(made)
            self.compare(made)
        self.summary.counts["kills after which the index equals a fresh one"] += 1
        self.summary.tell("a copy of it, completed, equals a fresh index")

    def finish(self) -> None:
        if self.performed:  # the first history of a state machine has none
            with self.recorded():
                super().finish()
            self.summary.counts["histories whose index equals a fresh one"] += 1
            self.summary.tell("the index equals a fresh one")


def use_models(setenv, url: str) -> None:
    """The settings of a local model server; its key is a planted secret."""
    for name, value in {
        "CHAT_MODEL": "openai/test-model",
        "CHAT_BASE_URL": url,
        "CHAT_API_KEY": SECRETS[0],
        "EMBEDDING_MODEL": "openai/test-embedding",
        "EMBEDDING_BASE_URL": url,
        "EMBEDDING_API_KEY": SECRETS[0],
        "CONCURRENCY": str(CONCURRENCY),
    }.items():
        setenv(f"GRAPHRAG_{name}", value)


def soak_histories(summary: Summary, minutes: float, first_seed: int) -> None:
    """Histories until the time is over and enough is done, but for no more than twice the time; each has its own seed.

    An hour's soak has 36 minutes of histories, with 200 operations, 100 kills and 20 kills in critical phases, two in
    each of them at least.
    """
    share, counts, began, number = minutes / 36, summary.counts, time.monotonic(), first_seed
    needed = {
        "random operations": 200 * share,
        "kills": 100 * share,
        "kills: critical": 20 * share,
        **{f"kills: {phase}": math.floor(2 * share) for phase in CRITICAL},
    }
    with running(latency=0.02) as server:
        while (spent := (time.monotonic() - began) / 60) < 2 * minutes:
            if spent >= minutes and all(counts[what] >= number for what, number in needed.items()):
                break
            summary.tell(f"history with the seed {number}")
            machine = type("History", (ProcessHistory,), {"server": server, "summary": summary})
            try:
                run_state_machine_as_test(seed(number)(machine), settings=_ONE)
            except FlakyStrategyDefinition:
                summary.tell("ends here: the rules that are possible after a kill at a time differ between histories")
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                summary.check(False, f"history with the seed {number}: {problem}: {traceback.format_exc()}")
            number += 1
    for what, n in needed.items():
        summary.require(what, n)
    summary.require("kills after which the index equals a fresh one", counts["kills"])
    summary.require("operations refused", at_most=MAX_REFUSED * counts["operations"])
    summary.require("calls repeated", at_most=0)


_ONE = settings(
    max_examples=2,  # the first is always the simplest one
    stateful_step_count=20,
    phases=[Phase.generate],  # processes are too slow for shrinking
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
