"""The steps are one straight line, and every tree on it fits its table."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.versions.programs import VERSIONS as STORED
from tests.versions.programs import golden

from pt2kit import schema
from pt2kit.errors import SchemaError, VersionError
from pt2kit.schema.fieldtable import NAMES, Nullable, frozen_table
from pt2kit.versions.check import fits
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.steps import MINORS, STEPS, TRACES, VERSIONS, convert, route


def test_the_line_has_every_version_that_has_a_table():
    """The log, the tables and the steps agree."""
    assert sorted(STORED) == sorted(NAMES)
    assert [version.number for version in schema.LOG] == [name for name in VERSIONS if name != "draft"]
    assert all(step.newer == following.older for step, following in pairwise(STEPS))


def test_routes():
    """Up, down, to the side and nowhere."""

    def names(source, target):
        return [f"{step.older}{'>' if up else '<'}{step.newer}" for step, up in route(source, target)]

    assert names("8.8", "8.8") == []
    assert names("7.3", "8.6") == ["7.3>8.2", "8.2>8.6"]
    assert names("8.6", "7.3") == ["8.2<8.6", "7.3<8.2"]
    assert names("5.3-traces", "7.3") == ["5.3-traces>5.3", "5.3>7.3"]
    assert names("7.3", "5.3-traces") == ["5.3<7.3", "5.3-traces<5.3"]
    assert names("5.1", "5.3-traces") == ["5.1>5.3", "5.3-traces<5.3"]
    assert names("5.3-traces", "5.3-traces") == []
    assert [step for step, _ in route("draft", "8.20")] == list(STEPS)
    assert TRACES not in STEPS


@pytest.mark.parametrize(("source", "target"), [("8.9", "8.20"), ("8.20", "6.0")])
def test_versions_without_steps_are_refused(source, target):
    """There is no way to a version that no release wrote."""
    with pytest.raises(VersionError, match=r"expected one of draft, 1, 2, .*5\.3-traces, 5\.3, .*8\.20, got"):
        route(source, target)


@pytest.mark.parametrize("source", STORED)
def test_every_program_reaches_every_version(source):
    """Up and down: conversion ends with a tree that fits, and with a note for everything that stood in the way."""
    tree = golden(source)
    for target in STORED:
        log = ConversionLog("x")
        try:
            new = convert(tree, source, target, log)
        except SchemaError as error:
            pytest.fail(f"{source} -> {target}: {error}")
        assert (new is tree) is (source == target)
    assert tree == golden(source)


def test_a_tree_that_does_not_fit_is_refused_first():
    """Before any step has seen it."""
    with pytest.raises(SchemaError, match=r"^x: schema 7\.3: "):
        convert(golden("8.20"), "7.3", "8.20", ConversionLog("x"))


def test_a_step_that_makes_a_misfit_is_caught(monkeypatch):
    """The tree is checked after each step."""
    from pt2kit.versions import steps

    broken = steps.Step("8.17", "8.20", lambda tree, _: {**tree, "opset_version": 1}, steps.STEPS[-1].downgrade)
    monkeypatch.setattr(steps, "STEPS", (*steps.STEPS[:-1], broken))
    with pytest.raises(SchemaError, match=r"^x: schema 8\.20: \$\.opset_version: expected dict\[str, int\], got 1"):
        convert(golden("8.17"), "8.17", "8.20", ConversionLog("x"))


def test_roots():
    """The draft is a graph module, everything else a program."""
    assert frozen_table("draft").root == "GraphModule"
    assert {frozen_table(name).root for name in STORED if name != "draft"} == {"ExportedProgram"}


@pytest.mark.parametrize("step", [*STEPS[1:], TRACES], ids=lambda step: step.newer)
def test_steps_up_fit(step):
    """The result of an upgrade step fits the newer table exactly."""
    before = golden(step.older)
    assert fits(step.apply(before, ConversionLog("x"), upwards=True), step.newer)


@pytest.mark.parametrize(("older", "newer"), [*pairwise(MINORS)])
def test_a_minor_only_adds(older, newer):
    """Whatever is of the older minor is of the newer: no type lost a field, an arm or a member, none was narrowed."""
    old, new = frozen_table(older).definitions, frozen_table(newer).definitions
    for name in old.keys() & new.keys():  # containers went, which no program holds
        before, after = old[name], new[name]
        assert after.kind == before.kind
        assert {each.value for each in before.members.values()} <= {each.value for each in after.members.values()}
        for key, field in before.fields.items():
            assert after.fields[key].type in (field.type, Nullable(field.type))
        added = [after.fields[key] for key in after.fields.keys() - before.fields.keys()]
        assert after.kind == "union" or all(field.default is not None for field in added)
        kept = [after.fields[key] for key, field in before.fields.items() if field.default is not None]
        assert all(field.default is not None for field in kept)
