"""The picture of docs/exchange.md: the explorer of the sample corpus, with an entity selected.

pip install playwright pillow
python -m docs.make_explorer_picture                # docs/img/explorer.png
python -m docs.make_explorer_picture --index data/index --hash '#community=0' --dark picture.png
"""

import argparse
import os
import tempfile
from pathlib import Path

from docs.make_pictures import save
from graphrag_assets.cli import main as command
from graphrag_assets.extras.explorer.page import write_page
from tests.browsers import chromium

ROOT = Path(__file__).resolve().parents[1]
ENTITY = "Great Eastern"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", type=Path, default=ROOT / "docs" / "img" / "explorer.png")
    parser.add_argument("--index", type=Path, help="index folder; default: the sample corpus is indexed")
    parser.add_argument("--hash", default="", help="what is selected, as in the page's address")
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index = options.index or sample_index(Path(folder))
        page = write_page(index, Path(folder) / "explorer.html")
        titles = page.content.tables["entities"]
        selected = options.hash or f"#entity={titles.filter(titles['title'] == ENTITY)['number'].item()}"
        take_picture(page.path, selected, options.picture, options.dark)


def sample_index(folder: Path) -> Path:
    os.environ |= {"GRAPHRAG_DATA": str(folder), "GRAPHRAG_INPUT": str(ROOT / "data" / "input"), "DAGSTER_HOME": ""}
    command(["index"], standalone_mode=False)
    return folder / "index"


def take_picture(path: Path, selected: str, picture: Path, dark: bool = False) -> None:
    with chromium() as browser:
        page = browser.new_page(
            viewport={"width": 1600, "height": 1000}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        page.goto(path.as_uri() + selected)
        page.wait_for_selector("[data-ready]")
        page.wait_for_timeout(2000)  # the map is drawn a frame later
        save(page.screenshot(), picture)


if __name__ == "__main__":
    main()
