"""Signatures of real and of hostile files."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.graph.build import program, programs
from tests.samples import CURRENT_LAYOUT, corpus, hostile, release_id, sample

from pt2kit import codec
from pt2kit.errors import Pt2Error
from pt2kit.signature import InputKind, OutputKind, from_schema, problems, to_schema

PLACE = "$.graph_module"


@pytest.mark.parametrize("path", corpus(*CURRENT_LAYOUT), ids=release_id)
def test_real_signatures_are_read_and_written_back(path: Path) -> None:
    """Nothing at all is wrong with a real signature, and it is written back byte for byte."""
    for record, read in programs(path):
        graph_module = read.graph_module
        assert list(problems(graph_module, f"{record}: {PLACE}")) == []
        signature = from_schema(graph_module)
        assert to_schema(signature) == graph_module.signature
        assert codec.encode(to_schema(signature)) == codec.encode(graph_module.signature)
        assert len(signature.input_specs) == len(graph_module.graph.inputs)
        assert len(signature.output_specs) == len(graph_module.graph.outputs)


def test_the_samples_have_the_kinds_that_exist() -> None:
    """The samples show all kinds but those that torch writes for objects and rare mutations."""
    kinds = {
        spec.kind
        for path in corpus("2.13.0")
        for _, read in programs(path)
        for signature in [from_schema(read.graph_module)]
        for specs in (signature.input_specs, signature.output_specs)
        for spec in specs
    }
    missing = {*InputKind, *OutputKind} - kinds
    assert missing == {InputKind.CUSTOM_OBJ, OutputKind.PARAMETER_MUTATION, OutputKind.GRADIENT_TO_USER_INPUT}


def test_tied_weights_may_come_in_twice() -> None:
    """Torch 2.9 writes two inputs for one parameter; that is no contradiction."""
    signature = from_schema(program(sample("2.9.1", "shared_weights__strict")).graph_module)
    assert signature.parameters.count("emb.weight") == 2


def test_views_of_a_joint_graph() -> None:
    """A training graph has its loss and gradients."""
    signature = from_schema(program(sample("2.13.0", "training_loss_joint")).graph_module)
    backward = signature.backward_signature
    assert backward is not None
    assert set(backward.gradients_to_parameters.values()) == set(signature.parameters)
    assert backward.gradients_to_user_inputs == {}
    assert signature.user_outputs == (backward.loss_output,)


def test_views_of_constant_inputs() -> None:
    """Constants among the user inputs are there as themselves."""
    signature = from_schema(program(sample("2.13.0", "scalar_inputs")).graph_module)
    assert signature.user_inputs == ("x", 3, 0.5, True, "abc")


# Hostile files whose signature contradicts the graph or itself: the rule and the place.
CONTRADICTORY = {
    "fx_parameter_name": ("S10", "input_specs[1]"),
    "g_dangling_output": ("S4", "output_specs[0]"),
    "g_sig_short": ("S1", "input_specs"),
    "g_sig_long": ("S1", "input_specs"),
    "g_sig_out_long": ("S2", "output_specs"),
    "g_sig_out_empty": ("S2", "output_specs"),
    "g_sig_name_mismatch": ("S3", "input_specs[0]"),
    "g_sig_swapped": ("S3", "input_specs[0]"),
    "g_param_dup_target": ("S8", "input_specs[3]"),
    "g_mutation_unknown": ("S7", "output_specs[0]"),
}

# Broken archives are not for this room: it gets programs.
PROGRAMS = [case for case in hostile() if not case["name"].startswith(("zip_", "flip_"))]


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case["name"])
def test_hostile_files(case: dict[str, Any]) -> None:
    """Contradictory signatures are refused as the manifest says, with rule and place; nothing else is refused."""
    try:
        read = list(programs(case["path"]))
    except (zipfile.BadZipFile, Pt2Error):
        assert case["name"] not in CONTRADICTORY
        return
    errors = []
    for record, found in read:
        try:
            from_schema(found.graph_module, f"{record}: {PLACE}")
        except Pt2Error as error:
            errors.append(error)
    if case["name"] not in CONTRADICTORY:
        assert errors == []
        return
    rule, place = CONTRADICTORY[case["name"]]
    assert [error.rule for error in errors] == [rule]
    assert type(errors[0]).__name__ in case["safe_reader"]["error_kinds"]
    assert str(errors[0]).startswith(f"models/model.json: {PLACE}.signature.{place}: expected ")
