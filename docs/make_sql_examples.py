"""The answers in docs/sql.md: real output of its queries on the sample corpus, written behind each.

python docs/make_sql_examples.py
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_assets.query import GraphRAG  # noqa: E402

GUIDE = ROOT / "docs/sql.md"
_QUERY = re.compile(r"```sql\n(.*?)```\n(?:\n<!-- answer -->\n.*?<!-- end -->\n)?", re.DOTALL)
_LONGEST = 90


def main() -> None:
    """Write the answers into the guide."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GRAPHRAG_DATA": folder, "GRAPHRAG_INPUT": str(ROOT / "data/input")}
        subprocess.run([sys.executable, "-m", "graphrag_assets", "index"], env=environment, check=True)
        guide = answered(GUIDE.read_text(encoding="utf-8"), GraphRAG(Path(folder) / "index"))
    GUIDE.write_text(guide, encoding="utf-8")


def queries() -> list[str]:
    """The guide's queries, in order."""
    return [match[1] for match in _QUERY.finditer(GUIDE.read_text(encoding="utf-8"))]


def answered(guide: str, rag: GraphRAG) -> str:
    """The guide with the answers that the index gives now."""
    return _QUERY.sub(lambda m: f"```sql\n{m[1]}```\n\n<!-- answer -->\n{_answer(rag, m[1])}<!-- end -->\n", guide)


def _answer(rag: GraphRAG, query: str) -> str:
    frame = rag.sql(query)
    if frame.is_empty():
        return "No rows.\n\n"
    numeric = [kind.is_numeric() for kind in frame.dtypes]
    rows = [frame.columns, ["---:" if right else "---" for right in numeric]]
    rows += [[_cell(value) for value in row] for row in frame.iter_rows()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.2f}" if isinstance(value, float) else " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


if __name__ == "__main__":
    main()
