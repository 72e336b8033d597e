"""Page of the viewer: served, or standalone with all of its data inside.

`page/index.html` is built from `viewer/` (`make viewer`): one script and one style sheet inside the page, nothing else.
A policy (Content-Security-Policy) lets exactly these run, by their hash, and nothing of what a file holds.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from importlib.resources import files
from typing import Final

from pt2kit.viewing.answers import Answers

MARK: Final = "<!-- data -->"
"""The position of the answers in a standalone page."""

_SCRIPT: Final = re.compile(r"<script type=\"module\">(.*?)</script>", re.DOTALL)

_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def built_page() -> str:
    """Return the page as it was built."""
    return files("pt2kit.viewing").joinpath("page/index.html").read_text("utf-8")


def policy(page: str, *, connect: str) -> str:
    """Return the content security policy of a page.

    Args:
        page: the built page.
        connect: where it may ask for answers: "'self'" or "'none'".
    """
    scripts, styles = (" ".join(map(_hash, pattern.findall(page))) for pattern in (_SCRIPT, _STYLE))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; worker-src blob:; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def alone(answers: Answers, *, tensors: bool = False) -> str:
    """Return a page that contains all answers and needs no network.

    Args:
        answers: about the files to show.
        tensors: work out the statistics of all tensors, too; reads all their bytes.

    Cost: the page has about 100 bytes for each node in addition to its own 100 kB.
    """
    page = built_page()
    parts = ['<meta name="pt2-answers" content="inline">']
    for request in answers.all_requests(tensors=tensors):
        # Only the 64 letters of base64 and digits and slashes get into the page: no text of the file does.
        packed = base64.b64encode(zlib.compress(answers.answer(request), 6)).decode("ascii")
        parts.append(f'<script type="application/octet-stream" data-request="{request}">{packed}</script>')
    allowed = policy(page, connect="'none'")
    head = f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'
    return page.replace("<head>", f"<head>{head}", 1).replace(MARK, "\n".join(parts), 1)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
