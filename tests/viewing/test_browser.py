"""Tasks of users in a real browser: open, fold, search, select, follow, compare; on files of every release."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pictures import written
from tests import samples
from tests.packages import rewritten
from tests.viewing.browser import Visit, visiting

from pt2kit.viewing.answers import Answers
from pt2kit.viewing.page import alone

AXE = Path(__file__).parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
MLP = samples.sample("2.13.0", "mlp")
COND = samples.sample("2.13.0", "cond")
TWO = samples.sample("2.13.0", "multi_model_package")
DYNAMIC = samples.sample("2.13.0", "dynamic_batch")
SUBGRAPHS = [
    next(path for path in reversed(samples.corpus()) if path.stem.startswith(name))
    for name in ("cond_closure", "while", "map_hop")
    if any(path.stem.startswith(name) for path in samples.corpus())
]
NEWEST = [samples.corpus(release)[0] for release in samples.RELEASES]


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve equal layers of 24 nodes."""
    return written("layers", 12, tmp_path_factory.mktemp("view") / "layers.json")


def boxes(visit: Visit) -> int:
    """Return how many items the picture has."""
    visit.page.wait_for_timeout(100)
    return int(visit.data("items"))


def test_opens(chromium: Any) -> None:
    """A file is drawn; its name, its call and its modules are there; nothing is asked of any other place."""
    with visiting(chromium, DYNAMIC) as visit:
        visit.go()
        assert visit.data("state") == "ready"
        assert visit.data("nodes") == "3"
        assert int(visit.data("drawn")) >= 5
        assert visit.text("#file") == "dynamic_batch.pt2"
        assert "forward(x: f32[s77, 8]) -> f32[s77, 4]" in visit.text("#panel")
        assert "Linear" in visit.text("#list")
        assert visit.errors == []
        assert visit.foreign() == []


def test_repeated_layers_fold_and_unfold(chromium: Any, layers: Path) -> None:
    """Equal layers stand as one box; it unfolds in place, and everything unfolds and folds again."""
    with visiting(chromium, layers) as visit:
        visit.go()
        visit.page.click("#fold")
        visit.settled()
        folded = boxes(visit)
        assert "layers \u00d7 12" in visit.text("#list")
        visit.page.click("#list button[aria-label='Unfold layers']")
        visit.settled()
        assert boxes(visit) >= folded + 12
        visit.page.click("#unfold")
        visit.settled()
        visit.page.wait_for_timeout(300)
        assert "open=all" in visit.page.url
        visit.page.click("#fold")
        visit.settled()
        assert boxes(visit) == folded
        assert visit.errors == []


def test_a_click_unfolds(chromium: Any, layers: Path) -> None:
    """A click on a folded box in the picture unfolds it."""
    with visiting(chromium, layers) as visit:
        visit.go()
        visit.page.click("#fold")
        visit.settled()
        visit.page.wait_for_timeout(400)
        before = boxes(visit)
        box = visit.page.locator("#canvas").bounding_box()
        visit.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        visit.settled()
        assert boxes(visit) > before


def test_search_selects(chromium: Any, layers: Path) -> None:
    """Words in the search find operators, names and modules; Enter goes to the first hit, and Escape clears."""
    with visiting(chromium, layers) as visit:
        visit.go()
        visit.page.keyboard.press("/")
        visit.page.keyboard.type("gelu layers.7.mlp")
        visit.page.wait_for_timeout(300)
        assert visit.text("#list [role=status]") == "1 hit"
        visit.page.keyboard.press("Enter")
        visit.settled()
        assert visit.text("#panel h2") == "gelu"
        assert "node=mlp_7_3" in visit.page.url
        visit.page.keyboard.press("Escape")
        assert visit.page.input_value("#search") == ""


@pytest.mark.parametrize("query", ["linear.default", "f32[8]", "p_layers", "Block", "attention_3_1", "layers.3"])
def test_search_knows(chromium: Any, layers: Path, query: str) -> None:
    """Operators, shapes, dtypes, names and modules are found."""
    with visiting(chromium, layers) as visit:
        visit.go(f"#/?q={query}")
        found = visit.text("#list [role=status]")
        assert (int(re.findall(r"[\d,]+", found)[0].replace(",", "")) > 0) == (query != "p_layers")


def test_deep_link_and_history(chromium: Any, layers: Path) -> None:
    """An address leads to a module or node and opens what is around it; back and forward go through the views."""
    with visiting(chromium, layers) as visit:
        visit.go("#/layers/5/mlp")
        assert visit.text("#panel h2") == "mlp"
        visit.page.locator("#panel .button", has_text="Unfold").click()
        visit.settled()
        visit.page.wait_for_timeout(300)
        opened = visit.page.url
        visit.page.locator("#list .name", has_text="layers").first.click()
        visit.settled()
        assert visit.page.url != opened
        visit.page.go_back()
        visit.settled()
        assert visit.page.url == opened
        assert visit.text("#panel h2") == "mlp"
        visit.go("#/no/such/module")
        assert "nothing here is called no.such.module" in visit.text("#message")


def test_cones_and_path(chromium: Any, layers: Path) -> None:
    """A node's inputs and users can be marked, and the path from it to another."""
    with visiting(chromium, layers) as visit:
        visit.go("#/?node=mlp_3_2")
        visit.page.get_by_role("button", name="Depends on").click()
        assert "mark=up" in visit.page.url
        visit.page.get_by_role("button", name="Is used by").click()
        assert "mark=down" in visit.page.url
        visit.go("#/?node=norm1_0_0&mark=to:mlp_0_4")
        assert re.fullmatch(r"path of \d+ nodes", visit.text("#spoken"))


@pytest.mark.parametrize(
    ("selected", "marked"),
    [("node=getitem&mark=up", {"sin", "cos"}), ("node=cond/true_graph_0/sin&mark=down", {"sin"})],
)
def test_cones_through_graphs(chromium: Any, selected: str, marked: set[str]) -> None:
    """The result of `cond` depends on both branches, and no branch on the other one."""
    with visiting(chromium, COND) as visit:
        visit.go(f"#/?{selected}")
        visit.page.pdf()
        bright = visit.page.locator("#paper text:not([opacity])").all_text_contents()
        assert {"sin", "cos", "output"}.intersection(bright) == {*marked, "output"}


def test_node_panel(chromium: Any) -> None:
    """The panel of a node has its arguments by schema name, its values, and the model's source."""
    with visiting(chromium, DYNAMIC) as visit:
        visit.go("#/?node=linear")
        visit.page.wait_for_selector("#panel .frame")
        panel = visit.text("#panel")
        for text in ("torch.ops.aten.linear.default", "input", "weight", "bias", "strides", "a.weight", ".py:"):
            assert text in panel


def test_symbol(chromium: Any) -> None:
    """A click on a symbol marks what it sizes, and shows its range."""
    with visiting(chromium, DYNAMIC) as visit:
        visit.go()
        visit.page.locator("#panel .symbol", has_text="s77").first.click()
        assert visit.text("#panel h2") == "s77"
        assert "2 … 64" in visit.text("#panel")
        assert "values of 4 nodes" in visit.text("#panel")


def test_tensor_panel(chromium: Any) -> None:
    """The numbers of a tensor are read when asked for, and from its record alone."""
    with visiting(chromium, DYNAMIC) as visit:
        visit.go("#/?weight=a.weight")
        assert not any("tensor" in url for url in visit.requests)
        visit.page.click("#read-numbers")
        visit.page.wait_for_selector(".heat")
        assert "data/weights/weight_" in visit.text("#panel")
        assert "128 elements" in visit.text("#panel")
        assert sum("/tensor/" in url for url in visit.requests) == 1


def test_bytes_tab(chromium: Any, layers: Path) -> None:
    """The second tab shows modules by bytes and by operators."""
    with visiting(chromium, MLP) as visit:
        visit.go()
        visit.page.click("#tab-bytes")
        assert visit.page.locator(".part").count() > 1
        visit.page.get_by_role("button", name="by operators").click()
        assert "ops" in (visit.page.locator(".part").first.get_attribute("aria-label") or "")


def test_difference(chromium: Any) -> None:
    """Two files are one picture; the changes are listed, and can be stepped through."""
    with visiting(chromium, samples.sample("2.13.0", "convnet"), DYNAMIC) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .changes")
        assert re.search(r"\d+ changes", visit.text("#list"))
        assert visit.text("#file") == "dynamic_batch.pt2 → convnet.pt2"
        visit.page.click("#next-change")
        visit.settled()
        assert visit.page.locator("#list .current").count() == 1
        visit.page.locator("#list .name", has_text="conv2d").first.click()
        visit.settled()
        assert "added" in visit.text("#panel")


def test_equal_files_have_no_difference(chromium: Any) -> None:
    """Equal files have no differences."""
    with visiting(chromium, MLP, MLP) as visit:
        visit.go()
        visit.page.wait_for_selector("#list [role=status]")
        assert visit.text("#list").strip() == "no differences"


def test_several_programs(chromium: Any) -> None:
    """Each program of an archive has its tab."""
    with visiting(chromium, TWO) as visit:
        visit.go()
        names = visit.page.locator("#programs button").all_inner_texts()
        assert len(names) == 2
        visit.page.locator("#programs button").nth(1).click()
        visit.settled()
        assert "program=1" in visit.page.url
        assert visit.page.locator("#programs button").nth(1).get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("path", SUBGRAPHS, ids=samples.release_id)
def test_subgraphs(chromium: Any, path: Path) -> None:
    """An operator that carries graphs is a box with a box for each of them."""
    with visiting(chromium, path) as visit:
        visit.go()
        visit.page.click("#fold")
        visit.settled()
        folded = visit.page.locator("#list li").count()
        visit.page.click("#unfold")
        visit.settled()
        visit.page.wait_for_selector(f"#list li:nth-child({folded + 1})")
        assert visit.errors == []


@pytest.mark.parametrize("path", NEWEST, ids=samples.release_id)
def test_files_of_every_release(chromium: Any, path: Path) -> None:
    """A file of each release opens."""
    with visiting(chromium, path) as visit:
        visit.go()
        assert visit.data("state") == "ready"
        assert visit.errors == []


@pytest.mark.parametrize(("kind", "size"), [("inputs", 5000), ("hub", 3000), ("deep", 60), ("flat", 5000)])
def test_strange_programs(chromium: Any, tmp_path: Path, kind: str, size: int) -> None:
    """Thousands of inputs or users, modules sixty deep, a large flat graph: drawn, unfolded, and usable."""
    with visiting(chromium, written(kind, size, tmp_path / f"{kind}.json")) as visit:
        visit.go()
        assert visit.data("state") == "ready"
        visit.page.click("#unfold")
        visit.settled()
        visit.page.keyboard.press("ArrowDown")
        assert int(visit.data("drawn")) > 0
        assert visit.errors == []


def test_an_archive_without_programs(chromium: Any, tmp_path: Path) -> None:
    """An archive of compiled code alone is shown as what it holds."""
    path = tmp_path / "compiled.pt2"
    gone = dict.fromkeys(("models/model.json", "data/weights/model_weights_config.json"))
    path.write_bytes(rewritten(MLP, {**gone, "data/aotinductor/model/model.so": b"code"}))
    with visiting(chromium, path) as visit:
        visit.go()
        assert visit.data("state") == "ready"
        assert "No program in this archive" in visit.text("#message")
        assert "model.so" in visit.text("#list")


def test_a_bad_file(chromium: Any, tmp_path: Path) -> None:
    """A file that cannot be read is the error of `pt2 show`, in the page."""
    path = tmp_path / "bad.pt2"
    path.write_bytes(b"PK\x03\x04 nothing of the kind")
    with visiting(chromium, path) as visit:
        visit.go()
        assert visit.data("state") == "error"
        assert "bad.pt2" in visit.text("#message")
        assert "expected" in visit.text("#message")
        assert not visit.page.locator("#canvas").is_visible()


def test_keyboard_alone(chromium: Any, layers: Path) -> None:
    """Arrows go from node to node, Enter unfolds, Escape goes out, keys do what buttons do."""
    with visiting(chromium, layers) as visit:
        visit.go()
        visit.page.focus("#canvas")
        visit.page.keyboard.press("ArrowDown")
        assert visit.text("#panel h2") == "x"
        visit.page.keyboard.press("ArrowDown")
        assert visit.text("#panel h2") == "layers"
        before = visit.data("items")
        visit.page.keyboard.press("Enter")
        visit.settled()
        assert int(visit.data("items")) > int(before)
        visit.page.keyboard.press("t")
        assert visit.data("theme") == "dark"
        visit.page.keyboard.press("?")
        assert visit.page.locator("#keys").is_visible()


def test_exports(chromium: Any) -> None:
    """The whole figure is saved as SVG, in which names are text, and as PNG of a chosen width."""
    with visiting(chromium, COND) as visit:
        visit.go()
        visit.page.click("#export")
        with visit.page.expect_download() as download:
            visit.page.click("#svg")
        text = Path(download.value.path()).read_text("utf-8")
        assert text.startswith("<svg")
        assert ">cond<" in text
        visit.page.click("#export")
        visit.page.fill("#export-width", "640")
        with visit.page.expect_download() as download:
            visit.page.click("#png")
        image = Path(download.value.path()).read_bytes()
        assert image.startswith(b"\x89PNG")
        assert int.from_bytes(image[16:20], "big") == 640


def test_printing(chromium: Any) -> None:
    """The browser's own command prints the whole figure, too."""
    with visiting(chromium, COND) as visit:
        visit.go()
        visit.page.pdf()
        assert "cond" in visit.page.locator("#paper text").all_text_contents()


@pytest.mark.parametrize("address", ["#/", "#/?weight=a.weight", "#/?tab=bytes", "#/?node=linear", "#/?q=relu"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(chromium: Any, address: str, scheme: str) -> None:
    """axe finds no serious violation."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (`make browser`)")
    with visiting(chromium, DYNAMIC, color_scheme=scheme, bypass_csp=True) as visit:
        visit.go(address)
        visit.page.wait_for_timeout(300)
        visit.page.evaluate(AXE.read_text("utf-8"))
        found = json.loads(visit.page.evaluate("axe.run().then(found => JSON.stringify(found.violations))"))
        serious = [
            f"{row['id']}: {node['html'][:160]}"
            for row in found
            if row["impact"] in ("serious", "critical")
            for node in row["nodes"]
        ]
        assert serious == []


def test_a_page_that_stands_alone(chromium: Any, tmp_path: Path) -> None:
    """One file opens from disk, shows all but the numbers of tensors, and asks the network for nothing."""
    answers = Answers(DYNAMIC, live=False)
    path = tmp_path / "alone.html"
    path.write_text(alone(answers, tensors=True), "utf-8")
    answers.close()
    context = chromium.new_context()
    try:
        visit = Visit(context.new_page(), path.as_uri())
        visit.go("#/?node=linear")
        visit.page.wait_for_selector("#panel .frame")
        assert visit.data("state") == "ready"
        visit.go("#/?weight=a.weight")
        visit.page.reload()
        visit.settled()
        visit.page.wait_for_selector(".heat")
        assert visit.errors == []
        assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    finally:
        context.close()
