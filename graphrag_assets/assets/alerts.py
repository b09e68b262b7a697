"""Alerts of failed runs: a message to a webhook whose address is a secret of the environment."""

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException

import dagster as dg

from graphrag_assets.assets.asset_checks import FAILED_CHECKS, evaluations_of, failed_check_messages
from graphrag_assets.errors import AlertError
from graphrag_assets.runtime.outgoing import shown
from graphrag_assets.settings import variable

VARIABLE = "GRAPHRAG_ALERT_URL"
_WILL_RETRY = "dagster/will_retry"  # tag of a failed run that Dagster retries
_ATTEMPTS, _PAUSE_SECONDS, _TIMEOUT_SECONDS = 2, 1.0, 5.0  # a tick of several runs has a minute
_LONGEST_REASON = 500


def alert_url() -> str:
    """Address of the webhook, or nothing. It is a secret, since it permits posting, and therefore no setting."""
    return variable(VARIABLE)


def failed_runs_alert() -> dg.SensorDefinition:
    """The sensor, for all jobs of the code location; on if there is an address."""

    @dg.run_failure_sensor(
        name="failed_runs_alert",
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING if alert_url() else dg.DefaultSensorStatus.STOPPED,
        description="Posts a message to the webhook of GRAPHRAG_ALERT_URL for every run that fails and is not retried.",
    )
    def failed_runs_alert(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        """Report one failed run. A message that cannot be sent fails the tick; the error does not name the address."""
        run, url = context.dagster_run, alert_url()
        if run.tags.get(_WILL_RETRY) == "true":
            return dg.SkipReason(f"Dagster retries run {run.run_id}.")
        if not url:
            return dg.SkipReason(f"{VARIABLE} is not set, so no alert is sent for run {run.run_id}.")
        failed = [event.step_failure_data.error for event in context.get_step_failure_events()]
        reasons = failed_check_messages(evaluations_of(context.instance, run.run_id))
        reasons += [(error.cause or error).message for error in failed if error and error.cls_name != FAILED_CHECKS]
        send(url, message(run, reasons or [context.failure_event.message or "It does not say why."]))
        return None

    return failed_runs_alert


def message(run: dg.DagsterRun, reasons: list[str]) -> str:
    """What people read: the job, its batch, the first line of each reason, the run's id. Never a key."""
    batch = run.tags.get("dagster/partition")
    job = "assets" if run.job_name.startswith("__") else run.job_name  # Dagster's name of a job of any assets
    lines = (shown(reason.strip().partition("\n")[0])[:_LONGEST_REASON] for reason in reasons)
    return f"Failed: {job}{f' of batch {batch}' if batch else ''}. {' '.join(lines)} (run {run.run_id})"


def send(url: str, text: str) -> None:
    """Post `{"text": …}`, which Slack, Mattermost, Rocket.Chat, Google Chat and Discord (…/slack) read.

    Raises:
        AlertError: it was not taken, twice. The message does not name the address.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            request = urllib.request.Request(
                url, data=json.dumps({"text": text}).encode(), headers={"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS):
                return
        except (OSError, HTTPException, ValueError) as error:  # of no server, of no HTTP, of no address
            if attempt == _ATTEMPTS:
                raise AlertError(
                    f"The alert could not be sent: {_in_words(error)}. Check the address in {VARIABLE}."
                ) from None
            time.sleep(_PAUSE_SECONDS)


def _in_words(error: Exception) -> str:
    """What went wrong; an error's own words may hold the address."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code}"
    reason = getattr(error, "reason", error)
    return reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
