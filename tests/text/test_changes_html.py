"""Differences as a page: whole, on its own, and not to be broken out of."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from tests.diffs.cases import hostile_text, pairs

from pt2kit.diffs import diff
from pt2kit.text.diff_report import diff_html

PAIRS = pairs()
ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "tr", "td", "details", "summary"}
ALLOWED |= {"pre", "span"}
VOID = {"meta"}


class Page(HTMLParser):
    """A page as a browser reads it: its tags, their attributes, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that tags close in order."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text.append(data)


@pytest.mark.parametrize("name", PAIRS)
def test_a_page_is_whole_and_needs_nothing_else(name: str) -> None:
    """Only the tags that it is made of, closed in order; no script, no link, no address."""
    text = diff_html(diff(*PAIRS[name]))
    page = Page(text)
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert {key for _, held in page.tags for key in held} <= {"lang", "charset", "class", "open"}
    classes = {held["class"] for _, held in page.tags if "class" in held}
    assert classes <= {"added", "removed", "modified", "place", "around"}
    assert "url(" not in text
    assert "@import" not in text


def test_hostile_names_are_text() -> None:
    """They are on the page, escaped, and open no tag."""
    text = diff_html(diff(*PAIRS["hostile"]))
    assert "<script" not in text
    assert "\x1b" not in text
    assert hostile_text()[4:29] in "".join(Page(text).text)
    assert "&lt;script&gt;" in text


def test_everything_is_on_the_page() -> None:
    """Nothing is folded away for good; long sections are closed at first."""
    found = diff(*PAIRS["other program"])
    page = Page(diff_html(found))
    marked = [held.get("class") for tag, held in page.tags if tag == "span"]
    kinds = [change.kind for change in found.changes]
    assert all(marked.count(kind) == kinds.count(kind) for kind in ("added", "removed", "modified"))
    assert all("open" in held for tag, held in page.tags if tag == "details")


def test_several_models_have_a_heading_each() -> None:
    """So has what belongs to none of them, by having none."""
    page = Page(diff_html(diff(*PAIRS["fewer models"])))
    assert "h1" in {tag for tag, _ in page.tags}
    assert page.open == []
