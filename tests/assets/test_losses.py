"""What answers of a model lose is counted in index_runs, in metadata and per text unit; lost gleanings are repeated."""

import json

import pytest

from tests.assets.test_language_models import is_gleaning_of, use
from tests.conftest import Project
from tests.openai_content import FILLER
from tests.openai_server import running

TEXTS = {
    "dropped": "Ada Byron wrote notes.",
    "guessed": "Cyrus Field laid a cable.",
    "invented": "Daniel Gooch bought a ship.",
    "glean": f"Robert Halpin sailed.{FILLER}",
}
STAGES = {
    "dropped": "dropped_records",
    "guessed": "guessed_repairs",
    "invented": "invented_claims",
    "glean": "glean",
}
LOSSES = {"dropped_records": 2, "guessed_repairs": 1, "invented_claims": 1, "failed_gleanings": 1}
ERRORS = "SELECT d.raw_data, e.stage FROM index_errors e JOIN text_units t ON t.id = e.source JOIN documents d ON d.id = t.document_id WHERE e.stage <> 'ungrounded'"


def answer(body: dict) -> str:
    """Two records of the wrong form, an answer without a colon, an invented quotation, a gleaning of the wrong form."""
    asked = str(body["messages"])
    said = {"entities": [{"name": "Somebody", "type": "person"}], "relationships": [], "claims": []}
    if is_gleaning_of(body):
        return '{"entities": 7}' if TEXTS["glean"] in asked else json.dumps(said)
    if TEXTS["dropped"] in asked:
        said["entities"] += [{"type": "person"}, 7]
    claim = {"subject": "Daniel Gooch", "type": "PURCHASE", "description": "He sold a ship.", "status": "TRUE"}
    if TEXTS["invented"] in asked:
        said["claims"] = [claim | {"source_text": "The whale sank with all hands aboard."}]
    told = json.dumps(said)
    return told.replace('"name":', '"name"') if TEXTS["guessed"] in asked else told


@pytest.mark.extended
def test_losses_are_counted_everywhere_and_the_next_run_repeats_the_gleaning_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.dumps({"id": name, "text": text, "kind": name}) for name, text in TEXTS.items()]
    project.write("b/a.jsonl", "\n".join(rows))
    with running(content=answer) as server:
        use(monkeypatch, server)
        project.register()
        ran = project.run_batch("b")
        index = project.index
        sums = ", ".join(f"sum(used.{name})::INT AS {name}" for name in LOSSES)
        counted = index.working.read(f"SELECT {sums} FROM (SELECT unnest(usage) AS used FROM index_runs)")
        assert counted.row(0, named=True) == LOSSES
        metadata = [
            event.step_materialization_data.materialization.metadata for event in ran.get_asset_materialization_events()
        ]
        assert [
            {name: found[f"llm/{name}"].value for name in LOSSES} for found in metadata if "llm/calls" in found
        ] == [LOSSES]
        stored = {json.loads(raw)["kind"]: stage for raw, stage in index.working.read(ERRORS).iter_rows()}
        assert stored == STAGES

        server.content = lambda body: json.dumps({"entities": [{"name": "Robert Halpin", "type": "person"}]})
        server.requests.clear()
        project.run_batch("b")
        (again,) = [request.body for request in server.chats if "<document" in str(request.body)]
        assert is_gleaning_of(again)
        assert TEXTS["glean"] in str(again["messages"])
        del STAGES["glean"]
        stored = {json.loads(raw)["kind"]: stage for raw, stage in index.working.read(ERRORS).iter_rows()}
        assert stored == STAGES
