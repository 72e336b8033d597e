"""Files made to harm, in a real browser: no script of theirs runs, no request leaves, the page stays usable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.pictures import HOSTILE, written
from tests import samples
from tests.viewing.browser import Visit, visiting

from pt2kit.viewing.answers import Answers
from pt2kit.viewing.page import alone

CASES = [case["path"] for case in samples.hostile() if str(case["path"]).endswith(".pt2")]


def use(visit: Visit) -> None:
    """Go everywhere in a page."""
    for selector in ("#unfold", "#plumbing", "#tab-bytes", "#tab-graph", "#fold", "#export", "#svg"):
        visit.page.click(selector)
        visit.settled()
    for key in ("ArrowDown", "ArrowDown", "Enter", "f", "Escape"):
        visit.page.focus("#canvas")
        visit.page.keyboard.press(key)
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("<script>")
    visit.page.wait_for_timeout(250)
    for place in range(min(4, visit.page.locator("#list .name").count())):
        visit.page.locator("#list .name").nth(place).click()
        visit.settled()


def assert_harmless(visit: Visit) -> None:
    """Nothing of the file ran, was asked for, or became an element."""
    assert visit.page.evaluate("window.hit ?? 0") == 0
    assert visit.page.evaluate("document.querySelectorAll('img, iframe, object, embed, form, base').length") == 0
    assert visit.page.evaluate("document.querySelectorAll('script:not([data-request])').length") == 1
    assert visit.page.evaluate("({}).hit === undefined && Object.prototype.toString.call([]) === '[object Array]'")
    assert visit.foreign() == []
    assert visit.errors == []


@pytest.mark.parametrize("length", [100, 10_000_000])
def test_names(chromium: Any, tmp_path: Path, length: int) -> None:
    """Script tags, bidirectional marks, `__proto__`, ten megabytes: each is text, cut and escaped."""
    with visiting(chromium, written("names", length, tmp_path / "names.json")) as visit:
        visit.go()
        assert visit.data("state") == "ready"
        assert visit.data("nodes") == str(len(HOSTILE) + 1)
        visit.page.wait_for_selector("#panel .finding", timeout=60_000)
        use(visit)
        assert_harmless(visit)


def test_names_in_a_page_that_stands_alone(chromium: Any, tmp_path: Path) -> None:
    """The same in a page that holds its answers."""
    answers = Answers(written("names", 100, tmp_path / "names.json"), live=False)
    path = tmp_path / "alone.html"
    path.write_text(alone(answers), "utf-8")
    answers.close()
    context = chromium.new_context()
    try:
        visit = Visit(context.new_page(), path.as_uri())
        visit.go()
        use(visit)
        assert_harmless(visit)
    finally:
        context.close()


def test_the_name_of_a_file(chromium: Any, tmp_path: Path) -> None:
    """A file may be called anything."""
    path = tmp_path / "<img src=x onerror=window.hit=1>.pt2"
    path.write_bytes(samples.sample("2.13.0", "mlp").read_bytes())
    with visiting(chromium, path) as visit:
        visit.go()
        assert "onerror" in visit.text("#file")
        assert_harmless(visit)


def test_addresses(chromium: Any) -> None:
    """Parts of an address are text, too."""
    with visiting(chromium, samples.sample("2.13.0", "mlp")) as visit:
        for part in ("<img src=x onerror=window.hit=1>", "%", "__proto__", "../../etc/passwd", "a" * 5000):
            visit.go(f"#/{part}?open=zz.-1.{part}&program=99&node={part}&mark=symbol:{part}&q=x")
            assert visit.data("state") == "ready"
        visit.errors = [text for text in visit.errors if "URI" not in text]
        assert_harmless(visit)


@pytest.mark.parametrize("part", range(4))
def test_the_hostile_set(chromium: Any, part: int) -> None:
    """Each file of the hostile set is shown, or is an error in the page; none does anything."""
    for path in CASES[part::4]:
        with visiting(chromium, path) as visit:
            visit.page.goto(visit.base)
            visit.page.wait_for_selector('html:not([data-state="loading"])', state="attached", timeout=60_000)
            assert visit.data("state") in ("ready", "error"), path.name
            assert visit.errors == [], path.name
            assert visit.foreign() == [], path.name
            assert visit.page.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0
