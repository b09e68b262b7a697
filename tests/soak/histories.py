"""Random histories of an index with real processes, real kills and a local model server that counts paid calls."""

import time
from typing import ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from graphrag_assets.indexing.scan import scan
from tests.hostile.history import IMPORTED, IndexHistory
from tests.kills import embedding_key, stored_answers, unstored
from tests.openai_server import OpenAIServer, running
from tests.soak.command import KILLED
from tests.soak.summary import SECRETS, Summary, run_command

CONCURRENCY = 5
LONG = ("index", "index one batch", "import", "purge")
LONGEST = 4.0  # seconds until a kill


class ProcessHistory(IndexHistory):
    """The rules of `IndexHistory`; each operation is a process."""

    server: ClassVar[OpenAIServer]
    summary: ClassVar[Summary]

    def __init__(self) -> None:
        super().__init__()
        use_models(self.patch.setenv, self.server.url)

    def run(self, operation: str, killed: int | None = None) -> str:
        """Kills are at a change of files; odd ones of long operations after some time."""
        if operation == "purge":  # which is refused unless the index is complete
            self.complete_import()
            self.run("index")
        arguments, index_folder = self.arguments(operation), self.index_folder
        self.server.requests.clear()
        stored = stored_answers(index_folder)
        if killed is None:
            end = ["never"]
        elif killed % 2 and operation in LONG:
            end = ["second", str(LONGEST * killed / 40)]
        else:
            end = ["change", str(killed)]
        status, output = run_command(self.summary, *end, *arguments)
        while self.server.in_flight:  # nobody receives these answers
            time.sleep(0.01)
        self.count(operation, status, output)
        self.account(operation, status == -9, stored)
        if status in (0, -9):
            return ""
        return " ".join(output[output.find("Error: ") :].split()) or f"status {status}"

    def arguments(self, operation: str) -> list[str]:
        match operation:
            case "index one batch":
                return ["index", *(f"--batch={batch}" for batch in scan(self.index).due[:1])]
            case "roll back":
                return ["rollback", "oldest"]
            case "import":
                return ["import", str(self.small)]
            case "remove the import":
                return ["import", "--remove", IMPORTED]
        return [operation]

    def count(self, operation: str, status: int, output: str) -> None:
        outcome = {0: "done", -9: "killed"}.get(status, "refused")
        phase = output.rpartition(KILLED)[2].partition("\n")[0] if status == -9 else ""
        self.summary.counts.update(["operations", f"operations: {operation}, {outcome}"])
        if status == -9:
            self.summary.counts.update(["kills", f"kills: {phase}"])
        self.summary.tell(f"{operation}: {outcome} {phase}".rstrip())

    def account(self, operation: str, was_killed: bool, before: set[tuple[str, str]]) -> None:
        """Requests are paid once: only those in flight at a kill are lost."""
        sent = list(self.server.requests)
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

    def compare(self) -> None:
        super().compare()
        self.summary.counts.update(["comparisons with a fresh index"])
        self.summary.tell("equal to a fresh index")


def use_models(setenv, url: str) -> None:
    """The settings of a local model server; its key is a planted secret."""
    for name, value in {
        "CHAT_MODEL": "openai/test-model",
        "CHAT_BASE_URL": url,
        "CHAT_API_KEY": SECRETS[0],
        "EMBEDDING_MODEL": "openai/test-embedding",
        "EMBEDDING_BASE_URL": url,
        "EMBEDDING_API_KEY": SECRETS[0],
        "BACKOFF_SECONDS": "0.05",
        "CONCURRENCY": str(CONCURRENCY),
    }.items():
        setenv(f"GRAPHRAG_{name}", value)


def soak_histories(summary: Summary, minutes: float, first_seed: int) -> None:
    """Histories until the time is over; each has its own seed."""
    end, number = time.monotonic() + 60 * minutes, first_seed
    with running(latency=0.02) as server:
        while time.monotonic() < end:
            summary.tell(f"history with the seed {number}")
            machine = type("History", (ProcessHistory,), {"server": server, "summary": summary})
            try:
                run_state_machine_as_test(seed(number)(machine), settings=_ONE)
            except Exception as error:
                summary.check(False, f"history with the seed {number}: {type(error).__name__}: {error}")
            number += 1


_ONE = settings(
    max_examples=2,  # the first is always the simplest one
    stateful_step_count=20,
    phases=[Phase.generate],  # processes are too slow for shrinking
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
