"""The table of settings in docs/models.md, from the settings' own descriptions.

python docs/make_settings_table.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_assets.settings import Settings  # noqa: E402

PAGE = ROOT / "docs/models.md"
_TABLE = re.compile(r"(<!-- settings: .*? -->\n).*?(<!-- end -->)", re.DOTALL)


def table() -> str:
    """Return a row for each setting."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        rows.append(f"| `GRAPHRAG_{name.upper()}` | `{field.default}` | {field.description} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda match: f"{match[1]}{table()}{match[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
