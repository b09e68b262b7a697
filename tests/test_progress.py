"""Long stages report progress: done and total, rate, tokens, cost and remaining time."""

import logging
import queue

import pytest

from graphrag_assets.assets.models import embedded_models
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.llm.concurrent_calls import _next_of
from graphrag_assets.runtime.progress import Progress
from graphrag_assets.settings import Settings


def test_line_shows_done_total_rate_tokens_cost_and_remaining_time():
    meter = UsageMeter()
    meter.add("earlier", Usage(prompt_tokens=99, cost_usd=5.0))
    progress = Progress("text units", 1200, lambda: meter.total)
    meter.add("extract", Usage(prompt_tokens=1000, completion_tokens=234, cost_usd=0.125))
    progress.advance(300)
    # 300 in 60 s are 5 per second; 900 are left, which is 180 s
    expected = "300 of 1,200 text units; 5.0 per second; 1,234 tokens, $0.1250; about 3 min 0 s left"
    assert progress.line(60.0) == expected


@pytest.mark.parametrize(("total", "words"), [(100, "9 s"), (1000, "1 min 39 s"), (36_010, "1 h 0 min")])
def test_the_rest_is_in_words(total, words):
    progress = Progress("texts", total)
    progress.advance(10)
    assert progress.line(1.0).endswith(f"; about {words} left")


def test_lines_come_every_few_seconds_and_not_for_each_thing(monkeypatch, caplog):
    now = [100.0]
    monkeypatch.setattr("graphrag_assets.runtime.progress._last_line", 0.0)
    monkeypatch.setattr("graphrag_assets.runtime.progress.time.monotonic", lambda: now[0])
    progress = Progress("texts", 20)
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            now[0] += 1.0
            progress.advance()
    assert [record.message.split(" texts")[0] for record in caplog.records] == [
        "5 of 20",
        "10 of 20",
        "15 of 20",
        "20 of 20",
    ]


def test_lines_come_while_one_call_takes_long(monkeypatch, caplog):
    now = [100.0]
    monkeypatch.setattr("graphrag_assets.runtime.progress._last_line", 0.0)
    monkeypatch.setattr("graphrag_assets.runtime.progress.time.monotonic", lambda: now[0])

    class Slow:
        """A queue whose first result comes after three timeouts, the second immediately."""

        waits = 3

        def get(self, timeout):
            if self.waits:
                self.waits -= 1
                now[0] += timeout
                raise queue.Empty
            return "result"

    progress, results = Progress("community reports", 4), Slow()
    with caplog.at_level(logging.INFO):
        assert _next_of(results, progress) == "result"
        progress.advance()
    assert [record.message for record in caplog.records] == ["0 of 4 community reports; 0.0 per second"] * 3


def test_embedded_default_reports_its_progress(monkeypatch, caplog):
    monkeypatch.setattr("graphrag_assets.runtime.progress.SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO):
        list(embedded_models(Settings()).extract([TextUnit("u1", "Ada Bell met Ben Roe."), TextUnit("u2", "Nothing.")]))
    assert "2 of 2 text units" in caplog.text
