"""The explorer in a real browser, on the sample corpus."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install -e '.[dev]'.")

from playwright.sync_api import expect

from graphrag_assets.extras.explorer.page import write_page
from tests.browsers import WHY_NOT

expect.set_options(timeout=60_000)

pytestmark = [pytest.mark.extended, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]

DARK = "getComputedStyle(document.body).backgroundColor"


def panel(page):
    return page.locator("#panel")


def heading(page):
    return panel(page).get_by_role("heading", level=2)


def search(page, words: str) -> None:
    page.keyboard.press("/")
    page.keyboard.type(words)
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()


def test_entity_found_by_keyboard_links_to_its_relationships_and_text(sample_index, sample_page, open_page):
    page = open_page(sample_page)
    search(page, "great eastern")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Great Eastern")
    ((number, description),) = sample_index.sql(
        "SELECT human_readable_id, description FROM entities WHERE title = 'Great Eastern'"
    )
    assert page.url.endswith(f"#entity={number}")
    expect(panel(page).locator(".description")).to_contain_text(description[:60].replace("*", ""))
    neighbors = sample_index.sql(
        f"SELECT n.title FROM search.edges e JOIN entities n ON n.human_readable_id = e.neighbor JOIN relationships r ON r.human_readable_id = e.relationship WHERE e.entity = {number} ORDER BY r.weight DESC, r.human_readable_id LIMIT 12"
    )
    relationships = panel(page).locator("section").filter(has_text="Relationships")
    expect(relationships.locator(".line > a:first-child")).to_have_text([title for (title,) in neighbors])
    passage = panel(page).locator(".passage").first
    expect(passage.locator("mark").first).to_have_text(re.compile("great eastern", re.IGNORECASE))
    passage.locator(".source a").click()
    here = page.locator(".unit.here")
    expect(here).to_be_visible()
    unit = re.search(r"#unit=(\d+)", page.url)[1]
    ((text, source),) = sample_index.sql(
        f"SELECT t.text, d.source FROM text_units t JOIN documents d ON d.id = t.document_id WHERE t.human_readable_id = {unit}"
    )
    assert here.locator(".text").text_content() == text
    expect(panel(page).locator(".facts")).to_contain_text(source)
    page.go_back()
    relationships.locator(".line > a:first-child").first.click()
    expect(heading(page)).to_have_text(neighbors[0][0])


def test_community_tree_links_to_reports_and_their_cited_rows(sample_index, sample_page, open_page):
    ((parent, child, title, size),) = sample_index.sql(
        "SELECT q.title, c.community, r.title, c.size FROM communities c JOIN communities p ON p.community = c.parent JOIN community_reports r ON r.community = c.community JOIN community_reports q ON q.community = p.community WHERE p.level = 0 ORDER BY p.size DESC, p.community, c.size DESC, c.community LIMIT 1"
    )
    page = open_page(sample_page)
    page.get_by_role("tab", name="Communities").click()
    page.locator("#list details summary").first.click()
    page.locator(f"#list a[href='#community={child}']").click()
    expect(heading(page)).to_have_text(title)
    expect(panel(page).locator(".aliases")).to_have_text(f"Part of {parent}")
    expect(panel(page).locator(".facts")).to_contain_text(f"{size} entities")
    summary = panel(page).locator(".description")
    expect(summary).not_to_contain_text("[Data:")
    cited = summary.locator("a[href^='#entity=']").first
    expected = cited.get_attribute("title")
    cited.click()
    expect(heading(page)).to_have_text(expected)


def test_candidates_are_listed_with_their_evidence_and_lead_to_both_names(sample_index, sample_page, open_page):
    page = open_page(sample_page)
    page.get_by_role("tab", name="Candidates").click()
    best = sample_index.sql(
        "SELECT n.title, o.title, evidence FROM entity_candidates JOIN entities n ON n.title_key = name_key "
        "JOIN entities o ON o.title_key = other_key ORDER BY score DESC, name_key, other_key LIMIT 1"
    )
    ((name, other, evidence),) = best
    first = page.locator("#list a.row").first
    expect(first.locator(".name")).to_have_text(f"{name} – {other}")
    expect(first.locator(".note")).to_contain_text(evidence)
    first.click()
    expect(panel(page).locator("code").first).to_have_text(f"graphrag-assets resolve accept '{name}' '{other}'")
    expect(panel(page).locator("section").nth(1).locator("h3")).to_have_text(other)
    expect(panel(page).locator(".passage mark").first).to_be_visible()
    panel(page).locator("section").first.get_by_role("link", name=name, exact=True).first.click()
    expect(heading(page)).to_have_text(name)
    expect(panel(page).locator("section").filter(has_text="May be one thing with")).to_contain_text(other)


@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(244, 245, 247)"), ("dark", "rgb(18, 22, 28)")])
def test_page_follows_the_color_scheme_and_fits_a_narrow_window(sample_page, open_page, scheme, background):
    page = open_page(sample_page, "#community=0", color_scheme=scheme, viewport={"width": 390, "height": 800})
    assert page.evaluate(DARK) == background
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.locator("#graph canvas").first).to_be_visible()


# The number and the place of the entity with most neighbors whose center no other entity covers.
FREE_HUB = """() => {
  const {graph, renderer} = explorer.map;
  const circle = (node) => {
    const {x, y} = renderer.graphToViewport(graph.getNodeAttributes(node));
    return {node, x, y, size: renderer.scaleSize(renderer.getNodeDisplayData(node).size)};
  };
  const circles = graph.mapNodes(circle).sort((a, b) => graph.degree(b.node) - graph.degree(a.node));
  const covers = (one, other) => one !== other && Math.hypot(one.x - other.x, one.y - other.y) <= one.size + 1;
  const {node, x, y} = circles.find((circle) => !circles.some((other) => covers(other, circle)));
  return [Number(node.slice(1)), {x, y}];
}"""


def test_the_map_draws_every_entity_and_a_click_selects_one(sample_index, sample_page, open_page):
    page = open_page(sample_page, viewport={"width": 1400, "height": 900})
    counts = sample_index.sql("SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM relationships)")
    assert page.evaluate("[explorer.map.graph.order, explorer.map.graph.size]") == list(counts[0])
    number, at = page.evaluate(FREE_HUB)
    ((title,),) = sample_index.sql(f"SELECT title FROM entities WHERE human_readable_id = {number:d}")
    page.locator("#graph").click(position=at)
    expect(heading(page)).to_have_text(title)
    colored = page.evaluate("new Set(explorer.map.nodeColors.values()).size")
    assert colored > 10


def test_a_graph_larger_than_the_map_is_shown_by_community_and_opened_one_by_one(sample_index, small_page, open_page):
    page = open_page(small_page(nodes=45))
    roots = sample_index.sql("SELECT count(*) FROM communities WHERE level = 0")[0][0]
    expect(page.locator(".place")).to_have_text(f"{roots} communities")
    ((largest, size),) = sample_index.sql(
        "SELECT community, size FROM communities WHERE level = 0 ORDER BY size DESC, community LIMIT 1"
    )
    page.get_by_role("tab", name="Communities").click()
    page.locator(f"#list a[href='#community={largest}']").click()
    panel(page).get_by_role("link", name="Open on the map").click()
    expect(page.locator(".place")).to_contain_text(f"{size} entities")
    search(page, "william thomson")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("William Thomson")
    ((home,),) = sample_index.sql(
        "SELECT size FROM search.entity_communities JOIN entities ON human_readable_id = entity JOIN communities USING (community) WHERE entities.title = 'William Thomson' AND entity_communities.level = 0"
    )
    expect(page.locator(".place")).to_contain_text(f"{home} entities")
    page.locator(".place").get_by_role("link", name="All").click()
    expect(page.locator(".place")).to_have_text(f"{roots} communities")


MARKUP = """# <img src=x onerror="window.hacked=1"> A title

<script>window.hacked = 1</script> said Captain James Anderson of the Great Eastern in 1865. </script></style>
Captain James Anderson met Cyrus <b>Field</b> at <a href="javascript:window.hacked=1">Heart</a>. "&lt;b&gt;" he wrote.
"""


def test_markup_in_documents_is_text(project, open_page):
    project.write("a/<img src=x>.md", MARKUP)
    with ThreadPoolExecutor(1) as aside:  # the browser's event loop has this thread
        aside.submit(project.index_all).result()
    write_page(project.root / "index")
    page = open_page(project.root / "index" / "explorer.html")
    for tab in ("Entities", "Communities", "Claims", "Documents"):
        page.get_by_role("tab", name=tab).click()
    page.locator("#list a").first.click()
    expect(heading(page)).to_have_text("A title")
    assert (
        panel(page).locator(".unit .text").first.text_content()
        == project.sql("SELECT text FROM text_units ORDER BY ordinal")[0][0]
    )
    search(page, "<script>window")
    page.keyboard.press("Enter")
    expect(page.locator(".unit.here mark").first).to_contain_text("<script>window")
    assert page.evaluate("[typeof window.hacked, document.querySelectorAll('img').length]") == ["undefined", 0]
