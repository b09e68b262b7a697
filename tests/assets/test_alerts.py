"""A failed run becomes one message at a webhook; its address, which is a secret, stands nowhere."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import dagster as dg
import pytest

from graphrag_assets.assets import alerts
from graphrag_assets.assets.asset_checks import check_key
from graphrag_assets.assets.checks import CHECKS
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.errors import AlertError
from tests.conftest import repository


class Webhook:
    """An HTTP server that keeps what is posted to it; answers with `statuses` in turn, then with 200."""

    def __init__(self) -> None:
        self.posted: list[dict] = []
        self.statuses: list[int] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook.statuses.pop(0) if hook.statuses else 200
                if status == 200:
                    assert self.headers["Content-Type"] == "application/json"
                    hook.posted.append(json.loads(body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/services/T0secret"

    @contextmanager
    def serving(self) -> Iterator["Webhook"]:
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()


@pytest.fixture
def webhook(monkeypatch) -> Iterator[Webhook]:
    monkeypatch.setattr(alerts, "_PAUSE_SECONDS", 0.0)
    with Webhook().serving() as hook:
        yield hook


def tick(project, cursor: str | None = None) -> dg.SensorEvaluationContext:
    """One evaluation of the sensor, as the daemon makes it; the context has its cursor and what it logged."""
    context = dg.build_sensor_context(instance=project.instance, repository_def=repository(), cursor=cursor)
    context.result = alerts.failed_runs_alert().evaluate_tick(context)
    return context


def fail(project) -> str:
    """A run that fails because a batch cannot be read; its id."""
    project.register()
    result = project.run_batch("broken", succeed=False)
    return result.run_id


@pytest.fixture
def broken(project, monkeypatch):
    import graphrag_assets.assets.index_batch as batch_index

    project.write("broken/a.txt", "Cyrus Field met William Thomson.")

    def poisoned(*arguments):
        raise RuntimeError("the disk is full, says sk-abcdefghijkl\nand more")

    monkeypatch.setattr(batch_index, "read_corpus", poisoned)
    return project


def test_each_failed_run_is_reported_once_and_without_keys(broken, webhook, monkeypatch):
    monkeypatch.setenv(alerts.VARIABLE, webhook.url)
    cursor = tick(broken).cursor  # from now on
    run_id = fail(broken)
    cursor = tick(broken, cursor).cursor
    (said,) = webhook.posted
    assert said == {
        "text": "Failed: assets of batch broken. graphrag_assets.errors.GraphRAGError: RuntimeError: "
        f"the disk is full, says … (run {run_id})"
    }
    tick(broken, cursor)
    assert len(webhook.posted) == 1


@pytest.mark.extended
def test_a_failed_check_is_reported_with_what_should_hold_and_the_remedy(project, webhook, monkeypatch):
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    project.index_all()
    monkeypatch.setenv(alerts.VARIABLE, webhook.url)
    cursor = tick(project).cursor
    with project.index.working.transaction() as connection:
        connection.execute("DELETE FROM community_reports WHERE community = 0")
    (check,) = [check for check in CHECKS if check.name == "every_community_has_a_report"]
    run_id = project.check(check_key(IndexNames(), check)).run_id
    tick(project, cursor)
    (said,) = webhook.posted
    assert said["text"].startswith("Failed: assets. Check failed: ")
    assert f"Check failed: {check.statement} {check.remedy}" in said["text"]
    assert said["text"].endswith(f" (run {run_id})")
    assert "Error" not in said["text"]


def test_a_webhook_that_stumbles_is_asked_again(webhook):
    webhook.statuses = [503]
    alerts.send(webhook.url, "Failed")
    assert webhook.posted == [{"text": "Failed"}]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("{hook}", "the server answered 403"),
        ("http://127.0.0.1:1/services/T0secret", "Connection refused"),
        ("no-address/T0secret", "ValueError"),
        ("http://127.0.0.1:1/T0secret and more", "InvalidURL"),
    ],
)
def test_what_cannot_be_sent_is_an_error_that_does_not_name_the_address(webhook, address, reason):
    webhook.statuses = [403, 403]
    with pytest.raises(
        AlertError, match=f"could not be sent: {reason}. Check the address in GRAPHRAG_ALERT_URL"
    ) as caught:
        alerts.send(address.format(hook=webhook.url), "Failed")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__  # nor does the traceback


def test_a_failing_tick_says_so_without_the_address(broken, webhook, monkeypatch):
    monkeypatch.setenv(alerts.VARIABLE, webhook.url)
    cursor = tick(broken).cursor
    fail(broken)
    webhook.statuses = [500, 500]
    reactions = tick(broken, cursor).result.dagster_run_reactions
    assert "the server answered 500" in str(reactions[0].error)
    assert "T0secret" not in str(reactions[0].error)


def test_a_retried_run_is_not_reported_and_nor_is_any_without_an_address(broken, webhook, monkeypatch):
    cursor = tick(broken).cursor
    run_id = fail(broken)
    assert "GRAPHRAG_ALERT_URL is not set" in tick(broken, cursor).result.skip_message
    monkeypatch.setenv(alerts.VARIABLE, webhook.url)
    broken.instance.add_run_tags(run_id, {"dagster/will_retry": "true"})
    assert "Dagster retries run" in tick(broken, cursor).result.skip_message
    assert webhook.posted == []


def test_the_address_may_stand_in_the_env_file(project, monkeypatch):
    assert alerts.alert_url() == ""
    (project.root / ".env").write_text(f"{alerts.VARIABLE}=http://hook\n")
    assert alerts.alert_url() == "http://hook"
