"""The ledger on SQLite: no process pays twice, even after crashes."""

import socket
import sqlite3
import time
from pathlib import Path

import pytest

from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.llm.ledger import Entry, Ledger, key_of
from graphrag_assets.llm.model_errors import LedgerError
from tests.llm.conftest import Extraction, Lab, ask, run


def entry(key: str, **more: object) -> Entry:
    return Entry(
        **{"key": key, "kind": "chat", "task": "extract", "provider": "openai", "model": "m", "parameters": "{}"} | more
    )


def test_a_stored_answer_is_on_disk_and_read_by_another_ledger(tmp_path: Path) -> None:
    file = tmp_path / "index" / "ledger.db"  # the folder is made
    run(Ledger(file).put(entry("a", response="Ada", prompt_tokens=3), entry("b", vector=b"\0\0\x80?")))

    found = run(Ledger(file).get_many(["a", "b", "c"]))

    assert found["a"].response == "Ada"
    assert found["a"].prompt_tokens == 3
    assert found["b"].vector == b"\0\0\x80?"
    assert set(found) == {"a", "b"}
    assert sqlite3.connect(file).execute("PRAGMA journal_mode").fetchone() == ("wal",)


FORMAT = """
CREATE TABLE llm_calls (
    key VARCHAR(64) NOT NULL PRIMARY KEY, kind VARCHAR(16) NOT NULL, task VARCHAR(64) NOT NULL,
    provider VARCHAR(64) NOT NULL, model VARCHAR(255) NOT NULL, parameters TEXT NOT NULL, response TEXT, vector BLOB,
    prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER DEFAULT '0' NOT NULL, completion_tokens INTEGER NOT NULL,
    cost_usd FLOAT NOT NULL, seconds FLOAT NOT NULL, batch TEXT, unit TEXT, run_id VARCHAR(64),
    created_at VARCHAR(32) NOT NULL
);
CREATE INDEX llm_calls_created_at ON llm_calls (created_at);
INSERT INTO llm_calls VALUES
('9781d4bb9195d7a30b7e43f7c36bd775fff47e1cc4cea5f72a25348891a84276', 'chat', 'extract_graph', 'openai', 'm',
 '{"temperature":0}', 'Ada', NULL, 3, 1, 2, 0.5, 1.5, 'letters', 'u1', 'r1', '2026-01-02T03:04:05.678901+00:00'),
('b', 'embedding', 'embed', 'openai', 'e', '{}', NULL, X'0000803F', 4, 0, 0, 0.25, 0.1, NULL, NULL, NULL,
 '2026-01-02T03:04:06.000000+00:00')
"""


def test_every_version_reads_a_ledger_of_this_format(tmp_path: Path) -> None:
    """Paid answers outlive versions of the package: this test may only ever get more formats."""
    with sqlite3.connect(tmp_path / "ledger.db") as file:
        file.executescript(FORMAT)
    file.close()
    ledger = Ledger(tmp_path / "ledger.db")
    key = key_of("extract_graph", {"temperature": 0}, [{"role": "user", "content": "é"}])
    chat, embedding = run(ledger.get(key)), run(ledger.get("b"))
    assert (chat.response, chat.prompt_tokens, chat.completion_tokens) == ("Ada", 3, 2)
    assert embedding.vector == b"\0\0\x80?"
    run(ledger.put(entry("c", response="new"), entry(key, response="not asked again")))
    assert ledger.frame()["key"].to_list() == [key, "b", "c"]
    assert run(ledger.get(key)).response == "Ada"


def test_the_first_answer_stays_unless_it_is_replaced(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    run(ledger.put(entry("a", response="first")))
    run(ledger.put(entry("a", response="second"), entry("b", response="other")))
    assert run(ledger.get("a")).response == "first"
    run(ledger.put(entry("a", response="third"), replace=True))
    assert run(ledger.get("a")).response == "third"
    assert run(ledger.get("b")).response == "other"


def test_the_keys_of_paid_answers_never_change(lab: Lab) -> None:
    """These keys are in ledgers: an answer under one of them is found by every version."""
    chat, embedding = (
        lab.chat(parameters='{"seed":7,"user":"me","max_tokens":9}'),
        lab.embedding(model="azure/emb", parameters='{"dimensions":64}'),
    )
    assert chat.key(ask(model=Extraction)) == ("a20ea61cd9bc2df65edca3fc4e31598281bd4c69b30ba9053593d7b7599761d8")
    assert (
        lab.chat(parameters='{"seed":7,"user":"me"}').key(ask("é"))
        == "b78ed7c5ef2715dbce9bc36a2c2f6d44279b6af39e34f517dc4b833390146c85"
    )
    assert embedding.key("Zoë") == "b03ee010c94a4d06cff9b19c3a15d89f296c83a45a118eff93c4d6557e9b0ffd"
    stored = '{"entities": [{"title": "Ada", "type": "PERSON", "strength": 1}]}'
    run(lab.ledger.put(entry(chat.key(ask(model=Extraction)), response=stored)))
    assert run(chat.complete(ask(model=Extraction))).text == stored
    assert lab.server.requests == []


def test_unusable_ledger_is_an_error_with_its_location_and_a_remedy(tmp_path: Path) -> None:
    broken = tmp_path / "ledger.db"
    broken.write_text("this is no database" * 100)
    with pytest.raises(LedgerError, match=r"ledger.db cannot be used: file is not a database.*GRAPHRAG_LEDGER_URL"):
        run(Ledger(broken).get("a"))
    with pytest.raises(LedgerError):
        Ledger(broken).spent_today()


@pytest.mark.parametrize("password", ["hunt/er22", "hunt:er@22/x"])
def test_the_password_of_the_ledger_is_never_shown(password: str) -> None:
    with pytest.raises(GraphRAGError) as caught, masked_errors():
        run(Ledger(f"postgresql+psycopg://team:{password}@127.0.0.1:1/ledger").get_many(["a"]))
    assert not any(part in str(caught.value) for part in ("hunt", "er22", "22/x"))
    assert "127.0.0.1:1/ledger" in str(caught.value)


def test_a_database_that_takes_connections_and_never_replies_is_an_error_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"postgresql+psycopg://u@127.0.0.1:{mute.getsockname()[1]}/ledger?connect_timeout=2"
        began = time.monotonic()
        with pytest.raises(LedgerError, match=r"cannot be used: .*timeout.*Check GRAPHRAG_LEDGER_URL"):
            run(Ledger(address).get("a"))
        assert time.monotonic() - began < 60
