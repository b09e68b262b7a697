"""Documents from a table that an asset of the project writes, and an asset that asks the index."""

import dagster as dg
import duckdb
import pytest

from graphrag_assets import GraphRagComponent, GraphRagResource
from graphrag_assets.assets.component import Documents
from tests.conftest import QUIET, Project

TICKETS = {
    1: ("Pump", "Cyrus Field met William Thomson in Valentia.", "north"),
    2: ("Valve", "Hugo Brand wrote to Pia Lund from Hamburg.", "north"),
    3: ("Cable", "The Great Eastern carried the cable to Newfoundland.", "south"),
}


class Warehouse:
    """A project in which the asset raw/tickets writes the table that an index is made of."""

    def __init__(self, project: Project) -> None:
        self.project, self.rows = project, dict(TICKETS)
        self.file = project.root / "warehouse.duckdb"

        @dg.asset(key=["raw", "tickets"])
        def tickets() -> None:
            with duckdb.connect(str(self.file)) as connection:
                connection.execute("CREATE SCHEMA IF NOT EXISTS raw")
                connection.execute(
                    "CREATE OR REPLACE TABLE raw.tickets (ticket INT, subject VARCHAR, body VARCHAR, region VARCHAR)"
                )
                connection.executemany(
                    "INSERT INTO raw.tickets VALUES (?, ?, ?, ?)", [(key, *row) for key, row in self.rows.items()]
                )

        @dg.asset(deps=[["support", "publication"]])
        def briefing(graphrag: GraphRagResource) -> dg.MaterializeResult:
            answer = graphrag.rag.local("Whom did Cyrus Field meet?")
            return dg.MaterializeResult(metadata={"answer": answer.answer})

        component = GraphRagComponent(
            data=str(project.root / "support"),
            input=Documents(
                asset="raw/tickets",
                database=str(self.file),
                table="raw.tickets",
                columns={"id": "ticket", "text": "body", "title": "subject"},
                partition_by="region",
            ),
            key_prefix="support",
        )
        resource = GraphRagResource(index=str(project.root / "support" / "index"))
        self.definitions = dg.Definitions.merge(
            dg.build_defs_for_component(component),
            dg.Definitions([tickets, briefing], resources={"graphrag": resource}),
        )
        self.repository = self.definitions.get_repository_def()

    def materialize(self, *keys: str) -> dg.ExecuteInProcessResult:
        job = self.repository.get_job("__ASSET_JOB").get_subset(
            asset_selection={dg.AssetKey(k.split("/")) for k in keys}
        )
        return job.execute_in_process(instance=self.project.instance, run_config=QUIET)

    def update(self, *rows: tuple[int, str, str, str]) -> dg.ExecuteInProcessResult:
        self.rows = {key: tuple(row) for key, *row in rows} if rows else self.rows
        self.materialize("raw/tickets")
        job = self.repository.get_job("support_update_index")
        return job.execute_in_process(instance=self.project.instance, run_config=QUIET)

    def documents(self) -> set[tuple[str, str, str]]:
        with duckdb.connect(str(self.project.root / "support/index/graphrag.duckdb"), read_only=True) as connection:
            return set(connection.execute("SELECT batch, title, raw_data ->> 'region' FROM documents").fetchall())


@pytest.fixture
def warehouse(project: Project) -> Warehouse:
    return Warehouse(project)


def test_rows_of_an_upstream_table_are_documents_and_edits_reach_the_publication(warehouse: Warehouse) -> None:
    warehouse.update()
    first = {("north", "Pump", "north"), ("north", "Valve", "north"), ("south", "Cable", "south")}
    assert warehouse.documents() == first
    again = warehouse.update((1, *TICKETS[1]), (2, "Valve 2", *TICKETS[2][1:]))
    assert warehouse.documents() == {("north", "Pump", "north"), ("north", "Valve 2", "north")}
    indexed = {
        event.partition
        for event in again.all_events
        if event.is_step_materialization and event.asset_key == dg.AssetKey(["support", "documents"])
    }
    assert indexed == {"north", "south"}
    answer = warehouse.materialize("briefing").asset_materializations_for_node("briefing")[0].metadata["answer"]
    assert "William Thomson" in answer.value


def test_the_lineage_leads_from_the_table_to_the_documents(warehouse: Warehouse) -> None:
    graph = warehouse.definitions.resolve_asset_graph()
    files, documents = dg.AssetKey(["support", "source_files"]), dg.AssetKey(["support", "documents"])
    assert graph.get(files).parent_keys == {dg.AssetKey(["raw", "tickets"])}
    assert files in graph.get(documents).parent_keys
    assert graph.get(files).is_observable
    assert {graph.get(key).group_name for key in graph.get_all_asset_keys() if key.path[0] == "support"} == {"support"}
