"""Long stages report progress: done and total, rate, tokens, cost and remaining time."""

import logging

from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.embedded import embedded_models
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


def test_embedded_default_reports_its_progress(monkeypatch, caplog):
    monkeypatch.setattr("graphrag_assets.runtime.progress.SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO):
        list(embedded_models(Settings()).extract([TextUnit("u1", "Ada Bell met Ben Roe."), TextUnit("u2", "Nothing.")]))
    assert "2 of 2 text units" in caplog.text
