"""`publications export cypher`: CSV files for `neo4j-admin database import`, the command, and the constraints."""

from pathlib import Path

import duckdb

from graphrag_assets.extras.interop.property_graph import EDGES, FINGERPRINT, FINGERPRINT_OF, NODES, SCHEMA
from graphrag_assets.store.schema import literal

_TYPES = {"BIGINT": "long", "INTEGER": "long", "DOUBLE": "double", "DATE": "date", "VARCHAR": "string"}
_IMPORT = """\
#!/bin/sh
# Fills a new database of a stopped server: sh import.sh [DATABASE]
# Then start the server and create the constraints: cypher-shell --database=DATABASE --file=constraints.cypher
cd "$(dirname "$0")" || exit 1
exec neo4j-admin database import full --multiline-fields=true --id-type=string {files} "${{1:-neo4j}}"
"""


def write_neo4j_files(connection: duckdb.DuckDBPyConnection, target: Path) -> dict[str, int]:
    """Write the property graph of the selected rows to a new folder; returns the rows by file."""
    target.mkdir()
    rows, arguments = {}, []
    for label, view in NODES.items():
        name = view.removeprefix("graph_")
        rows[name] = _copy(connection, view, target / f"{name}.csv", {"id": f"id:ID({label})"})
        arguments.append(f"--nodes={label}={name}.csv")
    for view, start, end in EDGES:
        headings = {"source": f":START_ID({start})", "target": f":END_ID({end})", "type": ":TYPE"}
        name = view.removeprefix("graph_")
        rows[name] = _copy(connection, view, target / f"{name}.csv", headings)
        arguments.append(f"--relationships={name}.csv")
    (target / "import.sh").write_text(_IMPORT.format(files=" ".join(arguments)))
    (target / "constraints.cypher").write_text("".join(f"{statement};\n" for statement in SCHEMA))
    return rows


def _copy(connection: duckdb.DuckDBPyConnection, view: str, path: Path, headings: dict[str, str]) -> int:
    """Write a view as CSV with neo4j-admin's headings; an empty text is quoted, a missing value is not."""
    described = connection.execute(f"DESCRIBE FROM {view}").fetchall()
    columns = {name: headings.get(name, f"{name}:{_TYPES[kind]}") for name, kind, *_ in described}
    shown = ", ".join(f'row."{name}" AS "{heading}"' for name, heading in columns.items())
    query = f'SELECT {shown}, {FINGERPRINT_OF} AS "{FINGERPRINT}:string" FROM {view} row'
    ((count,),) = connection.execute(f"COPY ({query}) TO {literal(path)} (FORMAT csv, HEADER)").fetchall()
    return int(count)
