"""Dropping and stripping parts by name, and nothing else."""

from __future__ import annotations

import pytest

from pt2kit.errors import UnsupportedError
from pt2kit.node_metadata.redaction import METADATA_KEYS, PROVENANCE_KEYS, STACK_TRACE_KEYS
from pt2kit.sanitizing.options import DROPS, STRIPS, make_options


def test_names() -> None:
    """Every name of the tables is accepted, and the record of an extra file."""
    options = make_options([*DROPS, "extra/a b.txt"], list(STRIPS), True)
    assert options.scrub_paths
    assert options.drops_extra("extra/anything")
    assert options.stripped_keys is None


def test_keys() -> None:
    """Each name strips its keys; no name strips none."""
    assert make_options().stripped_keys == frozenset()
    assert make_options(strip=["traces"]).stripped_keys == STACK_TRACE_KEYS
    assert make_options(strip=["traces", "provenance"]).stripped_keys == PROVENANCE_KEYS < METADATA_KEYS


def test_one_extra_file() -> None:
    """One extra file by its record drops that one."""
    options = make_options(["extra/a.bin"])
    assert options.drops_extra("extra/a.bin")
    assert not options.drops_extra("extra/b.bin")


@pytest.mark.parametrize("name", ["", "weights", "models/model.json", "extra/", "Compiled"])
def test_unknown_names(name: str) -> None:
    """Any other name is refused; what is there is listed."""
    with pytest.raises(UnsupportedError, match="drop: expected one of compiled, sample-inputs, extra, unused"):
        make_options(drop=[name])
    with pytest.raises(UnsupportedError, match="strip: expected one of traces, provenance, metadata"):
        make_options(strip=[name])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strip": "traces"}, r"strip: expected a collection of names, got one text; write strip=\['traces'\]"),
        ({"drop": "extra/a.txt"}, r"drop: expected a collection of names, got one text; write drop="),
        ({"strip": True}, "strip: expected a collection of names, got bool: True"),
        ({"drop": [1]}, "drop: expected a collection of names, got list"),
        ({"scrub_paths": "no"}, "scrub_paths: expected True or False, got 'no'"),
    ],
)
def test_other_types(options, message):
    """One text is not taken apart into letters; nothing else is guessed."""
    with pytest.raises(TypeError, match=message):
        make_options(**options)
