"""Sphinx: the pages of this folder -> a site; docstrings -> the reference. `make docs` builds it, warnings are errors.

Pages are Markdown that reads well as it is; only `reference/` has directives. Nothing is fetched while building: the
places that docstrings link to in other projects' documents are listed in `_site/*.txt`. `_site/scorer.js` ranks the
results of a search.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pt2kit

SITE = Path(__file__).parent / "_site"

project = "pt2kit"
author = "the pt2kit authors"
copyright = f"{author}; Apache License 2.0"
release = pt2kit.__version__.partition("+")[0]
html_title = f"pt2kit {release}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
]
html_theme = "furo"
exclude_patterns = ["_site", "_build"]
html_static_path = [str(SITE / "static")]
html_css_files = ["site.css"]
html_search_scorer = str(SITE / "scorer.js")

myst_heading_anchors = 4
nb_execution_mode = "off"  # what the notebook shows is stored in it, and compared by a test

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Two subpackages have a class `Report`; if an annotation says just that, the link leads to the first.
suppress_warnings = ["ref.python"]
default_role = "py:obj"

intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", str(SITE / "python.txt")),
    "numpy": ("https://numpy.org/doc/stable/", str(SITE / "numpy.txt")),
    "torch": ("https://docs.pytorch.org/docs/stable/", str(SITE / "torch.txt")),
}

_CODE = re.compile(r"(?<![`:\w])`([^`]+)`(?!`)", re.DOTALL)
_WORD = re.compile(r"\w")
_TAIL = re.compile(r"(?<=\w)(?=_(?!\w))|(?=\|)")
_NAME = re.compile(r"[A-Za-z_][\w.]*\.[\w.]*\w(\(\))?|[a-z_]{4,}|[A-Z]\w+")


def code_as_in_markdown(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Code is in single backticks in docstrings: names become links where they lead somewhere, the rest is literal.

    In a module's docstring an indented part is a table or a drawing, and is kept as it stands.
    """
    parts = _CODE.split("\n".join(lines))
    parts[::2] = [
        ("\\ " if _WORD.match(part) and number else "") + _TAIL.sub(r"\\", part)
        for number, part in enumerate(parts[::2])
    ]
    parts[1::2] = map(_code, parts[1::2])
    text = "".join(parts)
    lines[:] = _drawings(text.splitlines()) if what == "module" else text.splitlines()


def _code(inner: str) -> str:
    inner = " ".join(inner.split())
    return f"`{inner}`" if _NAME.fullmatch(inner) else f"``{inner}``"


def _drawings(lines: list[str]) -> list[str]:
    out: list[str] = []
    literal = False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not literal:
            out += ["", "::", ""]
        elif literal and line and not indented:
            out.append("")
        literal = indented or (literal and not line)
        out.append(line)
    return out


DOCUMENTED_AS = {
    "torch.export.exported_program.ExportedProgram": "torch.export.ExportedProgram",
    "Array": "numpy.ndarray",
}
"""Name of a class in code or annotations -> the name under which its own project documents it."""


def by_the_documented_name(app: Any, env: Any, node: Any, contnode: Any) -> None:
    """Let links to other projects look for the name that those document."""
    node["reftarget"] = DOCUMENTED_AS.get(node.get("reftarget"), node.get("reftarget"))


def without_links_out(app: Any, page: str, text: list[str]) -> None:
    """Links to files of the repository that are no pages lead nowhere on a site: their text stays."""
    here = (Path(app.srcdir) / page).parent

    def shown(found: re.Match[str]) -> str:
        inside = (here / found[2]).resolve().is_relative_to(app.srcdir)
        return found[0] if inside else f"{found[1]} (`{found[2].lstrip('./')}` in the repository)"

    text[0] = re.sub(r"\[([^\]\n]+)\]\((\.\./[^)#\s]+)\)", shown, text[0])


def setup(app: Any) -> None:
    """Hook the docstrings and the pages."""
    app.connect("source-read", without_links_out)
    app.connect("missing-reference", by_the_documented_name, priority=100)
    app.connect("autodoc-process-docstring", code_as_in_markdown, priority=100)
