"""`GraphRagComponent`: several indexes in one Dagster project, which never share state."""

import re
from pathlib import Path

import dagster as dg
import duckdb
import pytest
import yaml
from dagster_duckdb import DuckDBResource

from graphrag_assets import GraphRagComponent
from graphrag_assets.assets.component import Documents, _Scaffolder
from graphrag_assets.errors import SettingsError
from tests.conftest import QUIET, Project

CABLE = "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable to Newfoundland."
LETTER = "Hugo Brand wrote to Pia Lund from Hamburg. Pia Lund answered Hugo Brand in a letter from Oslo."


@dg.asset
def read_titles(papers_database: DuckDBResource) -> list[str]:
    """An asset of the project's own, which reads the publication of an index and cannot write it."""
    with papers_database.get_connection() as connection:
        with pytest.raises(duckdb.Error, match="read-only"):
            connection.execute("DELETE FROM entities")
        return [title for (title,) in connection.sql("SELECT title FROM entities").fetchall()]


@pytest.fixture
def hosted(project: Project, monkeypatch: pytest.MonkeyPatch) -> dg.RepositoryDefinition:
    """A project with two indexes; the environment's settings are those of a third."""
    monkeypatch.setenv("GRAPHRAG_INPUT", str(project.root / "nowhere"))
    monkeypatch.setenv("GRAPHRAG_CHUNK_SIZE", "60")
    for name, text in (("papers", CABLE), ("letters", LETTER)):
        file = project.root / name / "input" / "one" / "a.txt"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    components = [
        GraphRagComponent(data=str(project.root / "papers"), key_prefix="papers"),
        GraphRagComponent(data=str(project.root / "letters"), key_prefix=["mail", "letters"]),
    ]
    titles_of_papers = dg.Definitions(assets=[read_titles], jobs=[dg.define_asset_job("papers_titles", [read_titles])])
    definitions = dg.Definitions.merge(
        titles_of_papers, *(dg.build_defs_for_component(component) for component in components)
    )
    return definitions.get_repository_def()


def run(project: Project, repository: dg.RepositoryDefinition, job: str, **more) -> dg.ExecuteInProcessResult:
    return repository.get_job(job).execute_in_process(instance=project.instance, run_config=QUIET, **more)


def titles(folder: Path) -> set[str]:
    with duckdb.connect(str(folder / "index" / "graphrag.duckdb"), read_only=True) as connection:
        return {title for (title,) in connection.execute("SELECT title FROM entities").fetchall()}


@pytest.mark.extended
def test_two_indexes_share_no_state(project, hosted):
    run(project, hosted, "papers_update_index")
    assert {"Cyrus Field", "William Thomson"} <= titles(project.root / "papers")
    assert not (project.root / "letters" / "index").exists()
    assert "Cyrus Field" in run(project, hosted, "papers_titles").output_for_node("read_titles")
    run(project, hosted, "mail_letters_update_index")
    assert {"Hugo Brand", "Pia Lund"} <= titles(project.root / "letters")
    assert not titles(project.root / "letters") & titles(project.root / "papers")
    for name, prefix in (("papers", ["papers"]), ("mail_letters", ["mail", "letters"])):
        assert project.instance.get_dynamic_partitions(f"{name}_document_batches") == ["one"]
        event = project.instance.get_latest_materialization_event(dg.AssetKey([*prefix, "entities"]))
        assert event.asset_materialization.metadata["dagster/row_count"].value > 0
    (project.root / "letters" / "input" / "one" / "a.txt").write_text("Nora Quist wrote to Pia Lund from Bergen.")
    run(project, hosted, "papers_update_index")
    assert "Nora Quist" not in titles(project.root / "letters")
    assert project.instance.get_dynamic_partitions("document_batches") == []


def test_the_yaml_of_the_guide_is_a_component(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted0123")
    guide = (Path(__file__).parents[2] / "docs/dagster.md").read_text(encoding="utf-8")
    shown, _, of_asset = re.findall(r"```yaml\n(.*?)```", guide, flags=re.DOTALL)
    component = GraphRagComponent.resolve_from_dict(yaml.safe_load(of_asset)["attributes"])
    assert component.input.table == "raw.tickets"
    component = GraphRagComponent.resolve_from_dict(yaml.safe_load(shown)["attributes"])
    assert component.chat_api_key == "sk-planted0123"
    assert component.settings["model_parameters"] == {"temperature": 0, "embedding": {"dimensions": 512}}
    assert component.automation
    repository = dg.build_defs_for_component(component).get_repository_def()
    assert dg.AssetKey(["papers", "publication"]) in repository.asset_graph.get_all_asset_keys()


def test_a_scaffolded_component_has_a_data_folder_of_its_own(tmp_path):
    for name in ("papers", "letters"):
        (tmp_path / name).mkdir()
        request = dg.ScaffoldRequest("graphrag_assets.GraphRagComponent", tmp_path / name, "yaml", tmp_path, dg.Model())
        _Scaffolder().scaffold(request)
        written = yaml.safe_load((tmp_path / name / "defs.yaml").read_text())
        assert written["attributes"] == {"data": f"data/{name}"}


@pytest.mark.parametrize(
    ("documents", "location"),
    [
        ({"folder": "out"}, "/root/out"),
        ({"folder": "s3://bucket/out"}, "s3://bucket/out"),
        (
            {"table": "out/*.parquet", "partition_by": "day"},
            "duckdb:///?table=%2Froot%2Fout%2F%2A.parquet&partition_by=day",
        ),
        (
            {"database": "a.duckdb", "table": "raw.tickets"},
            "duckdb:////root/a.duckdb?table=raw.tickets&partition_by=16",
        ),
    ],
)
def test_documents_of_an_asset_are_a_folder_or_a_table(documents, location):
    assert Documents(**documents).location(Path("/root")) == location


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key_prefix": "my-index"}, "key_prefix: 'my-index' may have letters, digits and underscores only."),
        ({"settings": {"max_cluster_sise": 5}}, "settings: unknown setting 'max_cluster_sise'. See docs/models.md"),
        ({"settings": {"automation": "on"}}, "settings: 'automation' is a field of the component."),
        ({"settings": {"method": "fast"}}, "GRAPHRAG_METHOD=fast needs a chat model"),
        ({"settings": {"chunk_size": 10}}, "GRAPHRAG_CHUNK_SIZE=10: Input should be greater than or equal to 50"),
        ({"input": Documents()}, "input: give the folder or the table with the documents."),
        ({"input": Documents(database="postgresql://db", table="t")}, "input: database must be a DuckDB file."),
    ],
)
def test_what_does_not_fit_is_refused_when_the_project_loads(project, fields, said):
    with pytest.raises(SettingsError) as refused:
        dg.build_defs_for_component(GraphRagComponent(data=str(project.root), **fields))
    assert said in str(refused.value)


def test_models_are_the_component_s_and_keys_are_not_shown(project, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/of-the-environment")
    monkeypatch.setenv("GRAPHRAG_METHOD", "embedded")
    settings = {"chat_model": "openai/own", "claims": "off", "model_parameters": {"query": {"seed": 1}}}
    component = GraphRagComponent(
        data=str(project.root), key_prefix="x", settings=settings, chat_api_key="sk-planted0123"
    )
    definitions = dg.build_defs_for_component(component)
    index = definitions.resources["x_index"].resource_fn(None)
    assert index.settings.chat_model == "openai/own"
    assert index.settings.choices == ("model", "model", "model", "off")
    assert index.settings.parameters_of("query") == {"seed": 1}
    assert index.keys.chat == "sk-planted0123"
    assert "planted" not in repr(index) + str(definitions.resources)
