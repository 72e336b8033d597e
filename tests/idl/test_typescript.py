"""tsc --strict takes the types of every version, real programs written in TypeScript, and refuses broken ones."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from tests.idl.helpers import BROKEN, broken, golden, program, table, typescript

from pt2kit.errors import UnsupportedError
from pt2kit.idl import typescript as emitter
from pt2kit.idl.sources import versions
from pt2kit.schema.fieldtable import make_table

OPTIONS = ("--strict", "--noEmit", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")
# The compiler cannot see that numbers are of one type.
UNSEEN = ("an integer has a fraction",)


def _check(folder, *sources):
    command = [typescript(), *OPTIONS, *map(str, sources)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def _literal(tree):
    """A tree as TypeScript: numbers that JavaScript would round become bigints."""
    text = json.dumps(tree)
    return re.sub(r'("(?:[^"\\]|\\.)*")|(?<![\w.+-])-?\d{16,}(?![\d.eE])', lambda m: m[1] or f"{m[0]}n", text)


def test_real_programs_type_check_and_broken_ones_do_not(tmp_path):
    """Programs of today, one that uses every part of the schema, one of 2.2; and every fault but one."""
    typescript()
    for version in ("8.20", "2"):
        (tmp_path / f"v{version}.ts").write_text(emitter.emit(table(version)))
    lines = ['import type { ExportedProgram } from "./v8.20";', 'import type { ExportedProgram as Old } from "./v2";']
    good, old = program("mlp"), json.loads(json.dumps(program("mlp", "2.2.2")))
    (made_up,) = (json.loads(text) for _, root, text in golden("8.20") if root == "ExportedProgram")
    for place, tree in enumerate([good, made_up, program("cond"), program("inf_nan_floats")]):
        lines.append(f"export const good{place}: ExportedProgram = {_literal(tree)};")
    lines.append(f"export const old: Old = {_literal(old)};")
    for place, fault in enumerate(fault for fault in BROKEN if fault not in UNSEEN):
        lines += ["// @ts-expect-error", f"export const bad{place}: ExportedProgram = {_literal(broken(fault, good))};"]
    lines += ["// @ts-expect-error", f"export const mixed: Old = {_literal(good)};"]
    (tmp_path / "programs.ts").write_text("\n".join(lines) + "\n")
    done = _check(tmp_path, "programs.ts")
    assert (done.returncode, done.stdout[:2000]) == (0, "")


def test_every_version_type_checks(tmp_path):
    """By itself."""
    typescript()
    for version in versions():
        (tmp_path / f"v{version}.ts").write_text(emitter.emit(table(version)))
    done = _check(tmp_path, *(path.name for path in tmp_path.iterdir()))
    assert (done.returncode, done.stdout[:2000]) == (0, "")


def test_big_integers_are_written_as_such():
    """The helper of this test itself: digits in strings stay, floats stay."""
    tree = {"a": 2**63, "b": "9223372036854775808", "c": 1e300, "d": -(2**70), "e": 1234567890.0}
    text = _literal(tree)
    assert '"a": 9223372036854775808n' in text
    assert '"b": "9223372036854775808"' in text
    assert '"c": 1e+300' in text
    assert f'"d": {-(2**70)}n' in text


def test_a_type_with_a_name_of_the_prelude_is_refused():
    """The module needs these names itself."""
    types = make_table("9.1", {"Int": {"kind": "struct", "fields": {}}}, "test", docs={}, since={})
    with pytest.raises(UnsupportedError, match="TypeScript: expected no type named Int"):
        emitter.emit(types)
