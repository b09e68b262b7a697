"""The Dagster home of an index: its runs, partitions and ticks, kept beside it in the data folder."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import dagster as dg
import yaml
from filelock import FileLock

from graphrag_assets.errors import SettingsError
from graphrag_assets.settings import Settings

_OUTPUT_STAYS = {
    "compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
}
_LOCK = "opening.lock"
_WORKSPACE = """\
load_from:
  - python_module: {module_name: graphrag_assets.definitions, location_name: graphrag_assets}
"""


def make_home(settings: Settings) -> Path:
    """Return the home of the index, written if it has none. DAGSTER_HOME, where it is set, is used as it is.

    Raises:
        SettingsError: DAGSTER_HOME is not the absolute path of a folder.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        if not (Path(chosen).is_absolute() and Path(chosen).is_dir()):
            raise SettingsError(
                f"DAGSTER_HOME={chosen} must be the absolute path of an existing folder. Create it, or unset "
                "DAGSTER_HOME to use the home of the index."
            )
        return Path(chosen)
    home = settings.data.absolute() / "dagster"
    if (home / "dagster.yaml").exists():
        return home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    packaged = resources.files("graphrag_assets") / "dagster.yaml"  # of the project, in a wheel inside the package
    template = packaged if packaged.is_file() else Path(__file__).resolve().parents[2] / "dagster.yaml"
    configuration = yaml.safe_load(template.read_text(encoding="utf-8"))
    configuration["storage"]["sqlite"]["base_dir"] = str(home)
    configuration["compute_logs"]["config"]["base_dir"] = str(home / "logs")
    configuration["local_artifact_storage"]["config"]["base_dir"] = str(home)
    texts = {"workspace.yaml": _WORKSPACE, "dagster.yaml": yaml.safe_dump(configuration, sort_keys=False)}
    with FileLock(home / _LOCK):  # dagster.yaml comes last: with it, the home is complete
        for name, text in texts.items():
            (home / name).write_text(text, encoding="utf-8")
    return home


@contextlib.contextmanager
def dagster_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """Yield the Dagster instance of a home, for a run in this process, whose output belongs to the terminal."""
    os.environ["DAGSTER_HOME"] = str(home)  # where Dagster looks for it, in this process and those it starts
    file = home / "dagster.yaml"
    configuration = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    with tempfile.TemporaryDirectory() as folder, FileLock(home / _LOCK):  # one process creates the storage's tables
        changed = Path(folder) / file.name
        changed.write_text(yaml.safe_dump((configuration or {}) | _OUTPUT_STAYS), encoding="utf-8")
        opened = dg.DagsterInstance.from_config(str(home), str(changed))
    with opened as instance:
        yield instance
