"""The specification: generated pages are current, fields and rules are explained, tables are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tools import format_tables

from pt2kit import codec, graph, symbols, tensors, treespec
from pt2kit.checks.calls import is_usual
from pt2kit.package import record_names as names
from pt2kit.package.layouts import detection
from pt2kit.pickles import opcodes as pickle_opcodes
from pt2kit.pickles.allowed_globals import CALLS
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS
from pt2kit.pickles.values import STORAGES
from pt2kit.rules import RULES
from pt2kit.schema.reflection import field_table
from pt2kit.symbols.functions import OPAQUE, PLAIN
from pt2kit.tensors.bounds import DEVICE_TYPES
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.zip.source import DEFAULT_LIMITS, GIB, MIB

FOLDER = format_tables.FOLDER
CHAPTERS = sorted(path for path in FOLDER.glob("*.md") if path not in format_tables.PAGES)
BOLD = re.compile(r"\*\*([A-Z][0-9]{1,2})\*\*")
QUOTED = re.compile(r'"([A-Z][0-9]{1,2})"')
SRC = Path(__file__).parents[2] / "src" / "pt2kit"


def page(name: str) -> str:
    """The text of a chapter."""
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", format_tables.PAGES, ids=lambda path: path.name)
def test_generated_pages_are_current(path: Path) -> None:
    """A page is what the generator writes; else: make regen."""
    assert path.read_text(encoding="utf-8") == format_tables.PAGES[path]()


def test_every_field_has_a_meaning() -> None:
    """fields.yaml has one sentence for each field, arm and enum value of the current schema, and for nothing else."""
    wanted = {name: list(row["fields"]) for name, row in field_table().items()}
    given = format_tables.meanings()
    assert {name: list(texts) for name, texts in given.items()} == wanted
    for name, texts in given.items():
        for key, text in texts.items():
            assert re.fullmatch(r"[A-Z\d].{3,}\.", text), f"{name}.{key}: {text!r}"


def test_every_rule_is_explained_once() -> None:
    """Each rule id stands in bold in the chapter of its letter, and nowhere else but where the chapter refers to it."""
    found: dict[str, list[str]] = {}
    for path in CHAPTERS:
        for rule in BOLD.findall(path.read_text(encoding="utf-8")):
            found.setdefault(rule, []).append(path.name)
    assert {rule: set(pages) for rule, pages in found.items()} == {
        rule: {format_tables.CHAPTERS[rule[0]]} for rule in format_tables.rules()
    }
    assert {rule for rule, pages in found.items() if len(pages) > 1} <= {"A19"}


def test_every_rule_of_the_code_is_known() -> None:
    """Every id that the code quotes is in the table of rules; those of the schema's own changes are elsewhere."""
    quoted = {rule for path in SRC.rglob("*.py") for rule in QUOTED.findall(path.read_text(encoding="utf-8"))}
    assert {rule for rule in quoted if rule[0] in format_tables.CHAPTERS} <= set(RULES)


def test_every_chapter_is_in_the_index() -> None:
    """docs/format.md links every chapter."""
    index = (FOLDER.parent / "format.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.md"):
        assert f"(format/{path.name})" in index


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_examples_are_json(path: Path) -> None:
    """A block marked as JSON is JSON."""
    for block in re.findall(r"```json\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        json.loads(block)


@pytest.mark.parametrize("path", [*CHAPTERS, FOLDER.parent / "format.md"], ids=lambda path: path.name)
def test_files_that_examples_name_exist(path: Path) -> None:
    """A file of the suite that a chapter refers to is there."""
    root = FOLDER.parents[1]
    for name in re.findall(r"`(conformance/[\w./]+\.(?:pt2|json))`", path.read_text(encoding="utf-8")):
        assert (root / name).exists(), name


def test_element_types() -> None:
    """The table of element types is that of the code."""
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \| (\d+) \|", page("tensors.md"), re.MULTILINE)
    expected = [(int(row.scalar_type), row.scalar_type.name, row.name, row.itemsize) for row in DTYPES.values()]
    assert [(int(a), b, c, int(d)) for a, b, c, d in rows] == expected


def test_devices() -> None:
    """P6 lists the devices of the code."""
    listed = re.search(r"\*\*P6\*\* (.*)", page("tensors.md"))
    assert listed
    assert set(DEVICE_TYPES) <= set(re.findall(r"\w+", listed[1]))


def test_functions_of_expressions() -> None:
    """Every function that an expression may call is in the table."""
    text = page("symbols.md")
    table = text.split("## 4. Functions")[1].split("## 5.")[0]
    for name in symbols.FUNCTIONS:
        plain = name.removeprefix("OpaqueUnaryFn_").removeprefix("BitwiseFn_bitwise_")
        assert f"`{plain}`" in table or plain in (*OPAQUE, *PLAIN, "and", "or", "xor"), name
    assert all(f"`{name}`" in table for name in (*OPAQUE, *PLAIN))


def test_pickles() -> None:
    """Every global that is called, every opcode and every storage class is listed."""
    text = page("pickles.md")
    for path in CALLS:
        last = path.rpartition(".")[2]
        last = last.removeprefix("_rebuild_device_tensor")
        known = path.startswith(("torch.return_types.", "torch._tensor._rebuild_from_type")) or last in text
        assert known, path
    codes = text.split("## 2.")[1].split("## 3.")[0]
    for code, step in enumerate(pickle_opcodes._STEPS):
        if step is not None:
            shown = f"`{chr(code)}`" if code < 0x80 else f"{code:02x}"
            assert shown in codes, shown
    for path in STORAGES:
        assert path.rpartition(".")[2].lstrip("_").removesuffix("Storage") in text, path


def test_records_and_layouts() -> None:
    """Every record that a layout has is named in the chapter on archives."""
    text = page("archive.md")
    for name in (*names.PLAIN_RECORDS, names.MODELS, names.SERIALIZATION_ID, names.AOTINDUCTOR, names.EXECUTORCH):
        assert name.removesuffix(".pt").removesuffix(".json") in text
    assert f"from {detection.DATA_VERSIONS[0]} to {detection.DATA_VERSIONS[-1]}" in text


def test_targets() -> None:
    """Every function that rule X7 lists is one that the code takes for usual."""
    text = re.search(r"\*\*X7\*\*(.*?)\n- \*\*X8", page("checks.md"), re.DOTALL)
    assert text
    for module, listed in re.findall(r"`(_operator|math)\.` with ([\w, ]+)", text[1]):
        assert all(is_usual(f"{module}.{name.strip()}") for name in listed.split(","))
    for name in re.findall(r"`(torch\.\w+\.[\w.]+\w)`", text[1]):
        assert is_usual(name)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("json.md", (f"at most {codec.MAX_DEPTH} deep",)),
        ("graphs.md", (f"at most {graph.MAX_SUBGRAPH_DEPTH} levels",)),
        ("treespecs.md", (f"at most {treespec.MAX_DEPTH} containers",)),
        ("tensors.md", (f"at most {tensors.MAX_NDIM} dimensions",)),
        (
            "symbols.md",
            (
                f"{symbols.DEFAULT_LIMITS.text:,} characters",
                f"{symbols.DEFAULT_LIMITS.nodes:,} parts",
                f"{symbols.DEFAULT_LIMITS.depth} calls",
                f"{symbols.DEFAULT_LIMITS.bits:,} bits",
            ),
        ),
        (
            "archive.md",
            (
                f"{DEFAULT_LIMITS.max_entries:,} entries",
                f"{DEFAULT_LIMITS.max_directory_bytes // MIB} MiB of directory",
                f"{DEFAULT_LIMITS.max_inflated_bytes // GIB} GiB inflated",
                f"{DEFAULT_LIMITS.free_inflated_bytes // MIB} MiB and {DEFAULT_LIMITS.max_ratio} times",
            ),
        ),
        (
            "pickles.md",
            (
                f"{DEFAULT_PICKLE_LIMITS.stream_bytes // MIB} MiB of stream",
                f"{DEFAULT_PICKLE_LIMITS.opcodes:,} opcodes",
                f"{DEFAULT_PICKLE_LIMITS.memo_entries:,} memo entries",
                f"containers {DEFAULT_PICKLE_LIMITS.depth} deep",
                f"{DEFAULT_PICKLE_LIMITS.total_items:,} values",
            ),
        ),
    ],
)
def test_limits(name: str, texts: tuple[str, ...]) -> None:
    """The limits that a chapter states are those of the code."""
    for text in texts:
        assert text in page(name)
