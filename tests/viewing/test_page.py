"""The built page: newer than its source, one file, small, with a policy that names what is in it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from tests import samples

from pt2kit.viewing.answers import Answers
from pt2kit.viewing.page import alone, built_page, policy

VIEWER = Path(__file__).parents[2] / "viewer"
NAMED = ("index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")


def test_the_page_is_built_from_its_source() -> None:
    """The page that is committed says what it was built from; `make viewer` builds it anew."""
    digest = hashlib.sha256()
    files = sorted([*NAMED, *(f"src/{path.name}" for path in (VIEWER / "src").iterdir())])
    for name in files:
        digest.update(f"{name}\0".encode() + (VIEWER / name).read_bytes() + b"\0")
    [stamp] = re.findall(r'name="pt2-sources" content="(\w+)"', built_page())
    assert stamp == digest.hexdigest(), "the page is older than viewer/: run `make viewer`"


def test_the_page_is_one_small_file() -> None:
    """Nothing is loaded from anywhere, and the wheel stays small."""
    page = built_page()
    assert len(page.encode()) < 400_000
    assert not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=\"(?!data:)", page)
    assert page.count("<script") == 1


def test_the_policy_names_what_may_run() -> None:
    """The policy allows the page's own script and styles by their hash, and nothing by a word that allows more."""
    page = built_page()
    [script] = re.findall(r"<script type=\"module\">(.*?)</script>", page, re.DOTALL)
    name = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found = policy(page, connect="'none'")
    assert f"script-src 'sha256-{name}'" in found
    assert "connect-src 'none'" in found
    assert "unsafe" not in found


def test_a_page_that_stands_alone_holds_no_text_of_the_file(tmp_path: Path) -> None:
    """Answers go in packed, in letters that no parser of HTML looks at; the same file gives the same page."""
    answers = Answers(samples.sample("2.13.0", "odd_names"), live=False)
    page = alone(answers)
    assert page == alone(answers)
    answers.close()
    assert re.findall(r'<script type="application/octet-stream" data-request="([\w/]+)">[A-Za-z0-9+/=]+</script>', page)
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert "odd_names" not in page


def test_statistics_of_tensors_are_in_a_page_if_asked_for() -> None:
    """They take reading all bytes of the file, so a page has none by default."""
    answers = Answers(samples.sample("2.13.0", "mlp"), live=False)
    pages = alone(answers), alone(answers, tensors=False), alone(answers, tensors=True)
    answers.close()
    assert ['data-request="tensor/' in page for page in pages] == [False, False, True]
