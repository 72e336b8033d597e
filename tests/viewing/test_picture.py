"""The picture in a real browser: calls, folded plumbing, labels, camera, drawers, export, data, review, watching."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pictures import call, program, stack_of, written
from tests import samples
from tests.diffs.cases import with_other_bytes
from tests.viewing.browser import Visit, visiting

import pt2kit
from pt2kit import codec, schema
from pt2kit.viewing.answers import Answers

TIMES = "\N{MULTIPLICATION SIGN}"
MODELS = Path(__file__).parent / "models"
RELU = "torch.ops.aten.relu.default"


def model(name: str) -> bytes:
    """Return one of the stored models."""
    return gzip.decompress((MODELS / f"{name}.json.gz").read_bytes())


def figure(chromium: Any, file: Any, old: Any = None, data: Any = None) -> str:
    """Return the first picture of a file, as SVG."""
    with visiting(chromium, file, old, data=data) as visit:
        visit.go("#export")
        visit.page.wait_for_selector("#figure", state="attached")
        return str(visit.page.eval_on_selector("#figure", "element => element.textContent"))


def camera(visit: Visit) -> tuple[float, float, float]:
    """Return where the camera is: x, y, scale."""
    visit.page.wait_for_timeout(500)
    x, y, scale = map(float, visit.data("camera").split())
    return x, y, scale


RECORD = """() => {
  window.texts = [];
  const paint = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
    const { a, e } = this.getTransform();
    window.texts.push([text, (a * x + e) / devicePixelRatio]);
    return paint.call(this, text, x, ...rest);
  };
}"""


def painted(visit: Visit) -> list[tuple[str, float]]:
    """Return the texts of the picture as it is painted next, and how far from the left each of them is."""
    visit.page.evaluate(RECORD)
    visit.page.mouse.move(500, 500)
    visit.page.mouse.wheel(0, 5)
    visit.page.wait_for_timeout(400)
    return [(text, x) for text, x in visit.page.evaluate("window.texts")]


def test_a_language_model(chromium: Any) -> None:
    """It opens as embed, layers, norm and head, with plumbing folded and one layer next to it."""
    text = figure(chromium, model("llama28"))
    for label in (
        "embed_tokens · embedding",
        f"{TIMES} 28",
        "norm · LlamaRMSNorm",
        "lm_head · linear",
        "causal mask",
        "logits",
    ):
        assert label in text
    assert "0 · LlamaDecoderLayer" in text
    assert "unsqueeze" not in text


def test_a_convolutional_network(chromium: Any) -> None:
    """Its stages are boxes; modules of one operator are one node with kernel, stride and the shape of the weight."""
    text = figure(chromium, model("resnet50"))
    for label in (
        f"conv1 · conv2d 7{TIMES}7 s2",
        f"64{TIMES}3{TIMES}7{TIMES}7",
        f"maxpool · max_pool2d 3{TIMES}3 s2",
        "layer4 · Sequential",
        "relu_ 2/3",
    ):
        assert label in text


def test_an_encoder(chromium: Any) -> None:
    """Details of the rest are folded, so that the layer has room; checks are left out; masks are not called causal."""
    text = figure(chromium, model("bert"))
    for label in (
        "▸ embeddings · BertEmbeddings",
        f"{TIMES} 12",
        "0 · BertLayer",
        "▾ attention · BertAttention",
        "▸ mask",
    ):
        assert label in text
    for label in ("causal", "checks", "unused"):
        assert label not in text


def test_modules_of_one_class_look_alike(chromium: Any) -> None:
    """Of the stages of a program none is opened if there is no room for all."""
    text = figure(chromium, model("swin_t"))
    for number in (1, 3, 5):
        assert f"▸ {number} · Sequential" in text


def test_graphs_of_one_call_look_alike(chromium: Any) -> None:
    """Of the graphs of a call none is opened if there is no room for all, however small one of them is."""
    with pt2kit.open(samples.sample("2.13.0", "cond")) as package:
        written = codec.encode(package.programs["model"])
    assert "▾ true_graph_0" in figure(chromium, written)
    changed = json.loads(written)
    nodes = changed["graph_module"]["graph"]["nodes"]
    call_of_graphs = next(node for node in nodes if node["target"].endswith(".cond"))
    graph = call_of_graphs["inputs"][1]["arg"]["as_graph"]["graph"]
    [last] = graph["outputs"]
    for number in range(30):
        name = f"more_{number}"
        graph["nodes"].append(json.loads(codec.encode(call(RELU, [("self", last["as_tensor"]["name"])], name))))
        graph["tensor_values"][name] = graph["tensor_values"][last["as_tensor"]["name"]]
        last = {"as_tensor": {"name": name}}
    graph["outputs"] = [last]
    text = figure(chromium, json.dumps(changed).encode())
    assert "▸ true_graph_0" in text
    assert "▸ false_graph_0" in text


def test_a_wide_head_is_folded(chromium: Any) -> None:
    """A part wider than a window is folded, however large it is, and the rest is shown."""
    nodes, last = list[schema.Node](), "x"
    for number in range(4):
        stack = stack_of("backbone", "body", f"stage{number}", f"part{number}")
        for step in range(8):
            name = f"v_{number}_{step}"
            nodes.append(call(RELU, [("self", last)], last := name, stack))
    outputs = []
    for operator in ("tanh", "sin", "cos", "exp", "neg", "abs", "sigmoid", "sqrt"):
        name = last
        for part in ("a_rather_long_name", "b", "c", "d"):
            stack = stack_of("head", f"level_{operator}", part, kind="model.Head")
            nodes.append(call(f"torch.ops.aten.{operator}.default", [("self", name)], f"{operator}_{part}", stack))
            name = f"{operator}_{part}"
        outputs.append(name)
    text = figure(chromium, codec.encode(program(["x"], nodes, outputs)))
    assert "▸ head" in text
    assert "▾ body" in text
    assert "stage0" in text


def test_a_short_chain_stands_by_its_use(chromium: Any) -> None:
    """A value of parameters alone is drawn above the node that uses it, not at the top of the picture."""
    nodes, last = [call("torch.ops.aten.exp.default", [("self", "p_scale")], "exp")], "x"
    nodes.append(call("torch.ops.aten.neg.default", [("self", "exp")], "neg"))
    for number in range(20):
        nodes.append(call(RELU, [("self", last)], last := f"relu_{number}"))
    nodes.append(call("torch.ops.aten.mul.Tensor", [("self", last), ("other", "neg")], "mul"))
    text = figure(chromium, codec.encode(program(["x"], nodes, ["mul"], [("p_scale", "scale")])))
    heights = {name: float(y) for y, name in re.findall(r'<text [^>]*y="([-\d.]+)"[^>]*>(exp|neg|mul|relu)<', text)}
    assert heights["mul"] - heights["exp"] < 150


def test_values_from_module_to_module_are_one_line(chromium: Any) -> None:
    """Values that go from one folded module to another one share a line, through the borders of open modules, too."""
    nodes, outputs = [], []
    for number in range(6):
        name = f"part_{number}"
        nodes.append(call(RELU, [("self", "x")], name, stack_of("outer", "first")))
        outputs.append(name)
    nodes.append(call(RELU, [("self", "x")], "beside_it", stack_of("outer", "other")))
    nodes += [call(RELU, [("self", name)], f"{name}_b", stack_of("second")) for name in outputs]
    text = figure(chromium, codec.encode(program(["x"], nodes, ["part_0_b", "beside_it"])))
    assert "▾ outer" in text
    assert "▸ first" in text
    assert "6 values" in text


def test_plumbing_can_be_unfolded(chromium: Any) -> None:
    """A switch shows the operators that are folded, and folds them again."""
    with visiting(chromium, model("llama28")) as visit:
        visit.go()
        before = int(visit.data("items"))
        visit.page.click("#plumbing")
        visit.page.wait_for_timeout(500)
        assert int(visit.data("items")) > before + 20
        visit.page.click("#plumbing")
        visit.page.wait_for_timeout(500)
        assert int(visit.data("items")) == before


def calls(chain: list[tuple[str, str]]) -> bytes:
    """Return a program that calls modules one after another: (module, key in the module stack)."""
    nodes, last = [], "x"
    for number, (module, key) in enumerate(chain):
        for part in ("a", "b"):
            name = f"{module}_{number}_{part}"
            stack = stack_of(module).replace("k0", key)
            nodes.append(call(RELU, [("self", last)], name, stack))
            last = name
    return codec.encode(program(["x"], nodes, [last]))


def test_calls_are_told_apart(chromium: Any) -> None:
    """A module that is called three times is three boxes, which say which call they are."""
    text = figure(chromium, calls([("block", "k"), ("other", "o"), ("block", "k@1"), ("block", "k@2")]))
    for number in (1, 2, 3):
        assert f"call {number} of 3" in text


def test_a_cycle_of_boxes_is_split(chromium: Any) -> None:
    """If a file does not tell calls apart, a box that comes before and after another is two parts."""
    text = figure(chromium, calls([("block", "k"), ("other", "o"), ("block", "k"), ("last", "l")]))
    assert "part 1 of 2" in text
    assert "part 2 of 2" in text
    assert text.count("other · ") == 1


@pytest.mark.parametrize("width", [1400, 800, 390])
def test_names_can_be_read(chromium: Any, width: int) -> None:
    """The first picture and Fit never go below a legible size, at any width of the window."""
    with visiting(chromium, model("llama28")) as visit:
        visit.page.set_viewport_size({"width": width, "height": 800})
        visit.go()
        assert camera(visit)[2] >= 0.72
        visit.page.keyboard.press("u")
        visit.settled()
        assert camera(visit)[2] >= 0.72


def test_titles_stay_in_the_window(chromium: Any) -> None:
    """The title of a box whose left side is outside the window is at the window's edge."""
    with visiting(chromium, model("llama28")) as visit:
        visit.page.set_viewport_size({"width": 800, "height": 900})
        visit.go()
        visit.page.keyboard.press("u")
        visit.settled()
        titles = {text: x for text, x in painted(visit) if text.startswith("▾")}
        assert titles["▾ model · LlamaModel"] < 20, "it begins left of the window"
        assert min(titles.values()) >= 0


@pytest.mark.parametrize("width", [800, 390])
def test_the_page_is_as_wide_as_the_window(chromium: Any, width: int) -> None:
    """The bar of tools wraps, with all that a comparison adds to it."""
    with visiting(chromium, written_layers(3), written_layers(2)) as visit:
        visit.page.set_viewport_size({"width": width, "height": 800})
        visit.go()
        assert visit.page.evaluate("document.documentElement.scrollWidth") == width
        assert visit.page.locator("#split").is_visible()
        tops = [visit.page.locator(f"#{name}").bounding_box()["y"] for name in ("fold", "help")]
        assert tops[0] == tops[1], "the last button stands in the row of the first one"


def test_the_wheel_pans_and_zooms_with_control(chromium: Any) -> None:
    """As in maps: scrolling moves the picture, with Ctrl it zooms; zooming out stops at the whole picture."""
    with visiting(chromium, model("resnet50")) as visit:
        visit.go("#/?open=all")
        before = camera(visit)
        visit.page.mouse.move(600, 400)
        visit.page.mouse.wheel(0, 200)
        after = camera(visit)
        assert after[2] == before[2]
        assert after[1] > before[1]
        visit.page.keyboard.down("Control")
        for _ in range(40):
            visit.page.mouse.wheel(0, 200)
        visit.page.keyboard.up("Control")
        assert 0.02 < camera(visit)[2] < 0.5


def test_two_fingers_zoom_and_one_moves(chromium: Any) -> None:
    """On a phone the picture follows the fingers: what is between two of them stays there."""
    with visiting(chromium, model("bert"), has_touch=True) as visit:
        visit.page.set_viewport_size({"width": 390, "height": 844})
        visit.go()
        session = visit.page.context.new_cdp_session(visit.page)

        def touch(kind: str, *places: tuple[float, float]) -> None:
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        before = camera(visit)
        touch("touchStart", (150, 400), (240, 400))
        for step in range(1, 10):
            touch("touchMove", (150 - 8 * step, 400), (240 + 8 * step, 400))
        touch("touchEnd")
        after = camera(visit)
        assert after[2] > 2 * before[2]
        assert abs(after[0] + 195 / after[2] - before[0] - 195 / before[2]) < 5
        touch("touchStart", (200, 500))
        touch("touchMove", (200, 380))
        touch("touchEnd")
        moved = camera(visit)
        assert moved[2] == after[2]
        assert moved[1] > after[1] + 20
        assert visit.errors == []


def test_what_is_unfolded_comes_into_sight(chromium: Any) -> None:
    """After unfolding, the camera shows the top of what was opened."""
    with visiting(chromium, model("bert")) as visit:
        visit.go("#/encoder/layer/7/attention")
        visit.page.locator("#panel .button", has_text="Unfold").click()
        visit.settled()
        assert camera(visit)[2] >= 0.6
        assert int(visit.data("drawn")) > 5


def test_a_card_for_what_is_under_the_pointer(chromium: Any) -> None:
    """The card has name, operator, arguments, shapes and module."""
    with visiting(chromium, model("resnet50")) as visit:
        visit.go("#/?node=conv2d_1")
        visit.page.wait_for_timeout(500)
        box = visit.page.locator("#canvas").bounding_box()
        for step in range(16):
            visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + (step - 8) * 9)
            visit.page.wait_for_timeout(260)
            if visit.page.locator("#card").is_visible() and "aten." in visit.text("#card"):
                break
        text = visit.text("#card")
        assert "aten." in text
        assert "f32[" in text


@pytest.mark.parametrize("width", [800, 390])
def test_narrow_windows_have_drawers(chromium: Any, width: int) -> None:
    """Search, tree and panel are one button away; a choice gives the picture back; nothing sticks out of the page."""
    with visiting(chromium, model("resnet50")) as visit:
        visit.page.set_viewport_size({"width": width, "height": 700})
        visit.go()
        assert not visit.page.locator("#search").is_visible()
        visit.page.click("#open-left")
        visit.page.fill("#search", "op:conv2d")
        visit.page.wait_for_timeout(300)
        assert "53 hits" in visit.text("#list")
        visit.page.locator("#list .name").nth(4).click()
        visit.settled()
        assert not visit.page.locator("#search").is_visible()
        visit.page.click("#open-panel")
        assert visit.page.locator("#panel").is_visible()
        assert not visit.page.locator("#search").is_visible()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.errors == []


SEARCHES = [
    ("op:conv2d", 53),
    ("op:conv2d shape:*x112x112", 1),
    ("/^conv2d_5[0-2]$/", 3),
    ("op:conv2d module:layer4", 10),
]


@pytest.mark.parametrize(("query", "count"), SEARCHES)
def test_search_by_field(chromium: Any, query: str, count: int) -> None:
    """Fields, wildcards and regular expressions; Enter goes from hit to hit."""
    with visiting(chromium, model("resnet50")) as visit:
        visit.go()
        visit.page.fill("#search", query)
        visit.page.wait_for_timeout(300)
        assert visit.text("#list [role=status]") == f"{count} hit{'s' * (count != 1)}"
        visit.page.press("#search", "Enter")
        visit.settled()
        assert visit.text("#list [role=status]").startswith("1 of ")
        first = visit.text("#panel")
        visit.page.click("#next-change")
        visit.settled()
        assert count == 1 or visit.text("#panel") != first


def test_a_bad_regular_expression(chromium: Any) -> None:
    """A bad search shows an error."""
    with visiting(chromium, model("resnet50")) as visit:
        visit.go()
        visit.page.fill("#search", "/(/")
        visit.page.wait_for_timeout(300)
        assert "xpression" in visit.text("#list [role=status]")
        assert visit.errors == []


def test_the_canvas_is_reached_by_tab(chromium: Any) -> None:
    """Within five steps from the top of the page."""
    with visiting(chromium, samples.sample("2.13.0", "mlp")) as visit:
        visit.go()
        seen = []
        for _ in range(5):
            visit.page.keyboard.press("Tab")
            seen.append(visit.page.evaluate("document.activeElement.id"))
        assert "canvas" in seen


def test_numbers_on_nodes(chromium: Any) -> None:
    """The user's numbers and built-in ones color nodes; there is a legend, a table and a timeline."""
    answers = {"errors": {"conv2d": 0.5, "conv2d_1": 2.0, "no such node": 9.0}}
    with visiting(chromium, model("resnet50"), data=answers) as visit:
        visit.go()
        assert visit.page.eval_on_selector("#color", "element => element.value") == "errors"
        assert "2 nodes" in visit.text("#list")
        assert visit.text("#list tr:first-child").split() == ["conv2d_1", "2"]
        assert "0.5" in visit.text("#legend")
        visit.page.select_option("#color", "FLOPs")
        visit.page.wait_for_selector("#legend :text('FLOPs')")
        assert "8.2G in total" in visit.text("#list")
        visit.page.select_option("#color", "activation memory")
        visit.page.wait_for_selector("#legend :text('9.63 MB')")
        assert visit.page.locator("#timeline").is_visible()
        visit.page.locator("#timeline").click(position={"x": 5, "y": 20})
        visit.settled()
        assert "conv2d" in visit.text("#panel")
        assert visit.errors == []


def test_a_review(chromium: Any) -> None:
    """Changes are grouped by module, what is new as a whole is one line; each step moves the camera."""
    with visiting(chromium, written_layers(5), written_layers(6)) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .group")
        assert "layers.5 removed: 24 nodes" in visit.text("#list")
        places = set()
        for _ in range(3):
            visit.page.click("#next-change")
            visit.settled()
            places.add(camera(visit))
        assert len(places) > 1
        visit.page.click("#split")
        visit.page.wait_for_timeout(200)
        assert visit.page.get_attribute("#split", "aria-pressed") == "true"
        assert visit.errors == []


def test_a_review_has_no_sample(chromium: Any) -> None:
    """The layers next to a removed layer are folded: none of them is open as a sample of equal ones."""
    old, new = written_layers(30), written_layers(29)
    assert "▾ 0 · Block1" in figure(chromium, new)
    text = figure(chromium, new, old)
    assert "▸ 29" in text
    assert "▾ 0 · Block1" not in text


def test_what_is_gone_is_seen_first(chromium: Any) -> None:
    """The module around what is gone is open even if nodes before it have many changes."""

    def side(first: str, skipped: int) -> bytes:
        nodes, last = list[schema.Node](), "x"
        for module in range(30):
            for part in range(10):
                stack = stack_of(f"part{module}", f"inner{part}", kind=f"model.Part{module}{part}")
                for step, operator in enumerate(("sin" if module == 29 else first, "sin")):
                    if (module, part) == (29, skipped):
                        continue
                    name = f"v_{module}_{part}_{step}"
                    nodes.append(call(f"torch.ops.aten.{operator}.default", [("self", last)], last := name, stack))
        return codec.encode(program(["x"], nodes, [last]))

    old, new = side("tanh", -1), side("relu", 5)
    text = figure(chromium, new, old)
    assert "▾ part29" in text
    assert "▸ inner5 · Part295" in text


def test_old_and_new_values(chromium: Any) -> None:
    """A step goes to the change; the panel of its node has the old and the new value."""
    with visiting(chromium, with_other_call("tanh"), with_other_call("relu")) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .group")
        assert "~ 1 node" in visit.text("#panel")
        before = camera(visit)
        visit.page.keyboard.press("n")
        visit.settled()
        assert camera(visit) != before
        assert visit.text("#panel .versus .removed") == "aten.relu.default"
        assert visit.text("#panel .versus .added") == "aten.tanh.default"
        assert visit.errors == []


def test_each_side_has_its_labels(chromium: Any) -> None:
    """Side by side, the old program has its own operators and sizes."""
    with visiting(chromium, with_other_call("tanh"), with_other_call("relu")) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .group")
        visit.page.keyboard.press("n")
        visit.settled()
        visit.page.click("#split")
        texts = painted(visit)
        half = visit.page.locator("#canvas").bounding_box()["width"] / 2
        operators = {(text.rpartition(" ")[2], x > half) for text, x in texts}
        assert {("relu", False), ("tanh", True)} <= operators
        assert not {("tanh", False), ("relu", True)} & operators
        assert visit.errors == []


def test_names_of_differences_are_whole(chromium: Any) -> None:
    """The name of what differs has a line for itself; the list leaves out what only the metadata say."""
    with visiting(chromium, with_other_call("tanh", "elsewhere"), with_other_call("relu")) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .group")
        visit.page.keyboard.press("n")
        visit.settled()
        assert "metadata note" in visit.text("#panel .versus")
        assert "metadata" not in visit.text("#list .versus")
        heights = "names => names.map(name => name.getBoundingClientRect().height)"
        assert max(visit.page.eval_on_selector_all(".versus th[colspan]", heights)) < 30


def test_metadata_is_no_change_of_a_node() -> None:
    """A node that differs in its metadata alone is listed, after the others, and keeps its color."""
    answers = Answers(with_other_call("relu", "elsewhere"), with_other_call("relu"))
    picture = json.loads(answers.answer("program/0"))
    changes = json.loads(answers.answer("changes/0"))
    answers.close()
    [change] = [change for change in changes if change["area"].startswith("node")]
    assert (change["area"], change["kind"]) == ("node metadata", "modified")
    assert change["lines"] == [["metadata note", "", "elsewhere"]]
    assert set(picture["nodes"]["status"]) == {0}


def test_a_new_module_is_one_group(chromium: Any) -> None:
    """Steps follow the list: groups as they are listed, in each the nodes before the weights."""
    with visiting(chromium, written_layers(6), written_layers(5)) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .group")
        assert "layers.5 added: 24 nodes" in visit.text("#list")
        visit.page.click("#next-change")
        visit.settled()
        assert visit.page.locator("#list .group").first.locator("li.current").count() == 1
        assert visit.text("#list li.current .faint") == "node"
        weight = visit.page.locator("#list .group").first.locator("li.added", has_text="weight").first.locator(".name")
        assert weight.inner_text() == "+ norm1.weight"
        assert weight.get_attribute("title") == "layers.5.norm1.weight"


def with_other_call(operator: str, metadata: str = "") -> bytes:
    """Return a program of three layers, with another operator or other metadata in a node of the second."""
    from benchmarks.pictures import layers

    tree = json.loads(codec.encode(layers(3)))
    [node] = [node for node in tree["graph_module"]["graph"]["nodes"] if node["name"] == "mlp_1_3"]
    node["target"] = f"torch.ops.aten.{operator}.default"
    node["metadata"]["note"] = metadata
    return json.dumps(tree).encode()


def test_figure_of_a_comparison(chromium: Any) -> None:
    """The figure of two files opens what changed, and says below it what its colors mean."""
    text = figure(chromium, with_other_call("tanh"), with_other_call("relu"))
    assert "~ 1 node" in text
    assert ">tanh<" in text


def test_figure_with_numbers(chromium: Any) -> None:
    """The figure has the user's colors and their scale."""
    text = figure(chromium, model("resnet50"), data={"errors": {"conv2d": 0.25, "conv2d_1": 2.5}})
    for label in (">errors<", ">0.25<", ">2.5<"):
        assert label in text


def test_drift_of_weights(chromium: Any) -> None:
    """Weights with other values color their nodes, by how far they are from the old ones."""
    old, new = with_other_bytes("mlp", "weights")
    with visiting(chromium, new, old) as visit:
        visit.go()
        visit.page.wait_for_selector("#list .group")
        visit.page.select_option("#color", "weight drift")
        visit.page.wait_for_selector("#legend :text('weight drift')")
        assert visit.text("#list td.number").endswith("%")
        assert visit.errors == []


def written_layers(count: int) -> bytes:
    """Return a program of that many equal layers."""
    from benchmarks.pictures import layers

    return codec.encode(layers(count))


def test_a_file_that_changes(chromium: Any, tmp_path: Path) -> None:
    """With `watch` the page follows a new export, and keeps its place."""
    path = written("layers", 3, tmp_path / "model.json")
    with visiting(chromium, path, watch=True) as visit:
        visit.go("#/layers/1")
        assert visit.data("nodes") == "72"
        written("layers", 4, tmp_path / "new.json").replace(path)
        visit.page.wait_for_selector('html[data-nodes="96"]', state="attached", timeout=15_000)
        visit.settled()
        assert visit.text("#panel h2") == "1"


def test_paths_can_be_left_out() -> None:
    """With `hide_paths` no answer has the directories of a source file."""
    path = samples.sample("2.13.0", "dynamic_batch")
    for hide in (False, True):
        answers = Answers(path, live=False, hide_paths=hide)
        text = b"".join(map(answers.answer, answers.all_requests()))
        answers.close()
        assert (str(path.parent).encode() in text) != hide
        assert path.name.encode() in text
        assert (b'file":"/' in text) != hide


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_export_of_a_figure(tmp_path: Path, suffix: str) -> None:
    """The figure is written without opening a page."""
    from pt2kit.viewing.page import BROWSERS, write_figure

    if not any(map(shutil.which, BROWSERS)):
        pytest.skip("Chromium is not installed")
    answers, out = Answers(model("resnet50"), live=False), tmp_path / f"figure.{suffix}"
    write_figure(answers, out, 700)
    answers.close()
    content = out.read_bytes()
    check: Callable[[bytes], bool] = {
        "svg": lambda found: found.startswith(b"<svg") and f"conv1 · conv2d 7{TIMES}7 s2".encode() in found,
        "png": lambda found: found.startswith(b"\x89PNG") and int.from_bytes(found[16:20], "big") == 700,
        "pdf": lambda found: found.startswith(b"%PDF"),
    }[suffix]
    assert check(content)
