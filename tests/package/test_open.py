"""`pt2kit.open` on real files: what a package gives, lazily, from wherever its bytes are."""

from __future__ import annotations

import gc
import io
import weakref
from functools import partial
from pathlib import Path

import pytest
from tests import samples
from tests.narrow import instance, numbers, present
from tests.packages import rewritten
from tests.threads import in_threads
from tools.trace import COMMANDS, trace

import pt2kit
from pt2kit import schema
from pt2kit.errors import ArchiveError, IntegrityError
from pt2kit.package import record_names as names
from pt2kit.tensors import OpaquePayload

MLP = samples.sample("2.13.0", "mlp")
CURRENT = samples.corpus(*samples.CURRENT_LAYOUT)


@pytest.mark.parametrize("path", CURRENT, ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """Every file of torch 2.9 and later opens: programs of the current version, weights of the stated sizes."""
    release = path.parent.name
    with pt2kit.open(path) as package:
        assert package.producer.startswith(f"torch {release}")
        assert package.layout.kind == "archive"
        for model, program in package.programs.items():
            assert (program.schema_version.major, program.schema_version.minor) == schema.CURRENT.pair
            for name, view in (*package.weights(model).items(), *package.constants(model).items()):
                assert view.name == name
                assert not isinstance(view, OpaquePayload)
                assert view.numpy().shape == view.sizes
            assert package.sample_inputs(model) is not None
            assert package.unknown(model) == ()
        assert all(package.relative(name) != name for name in package.records)


@pytest.mark.parametrize(
    ("release", "version"),
    [("2.9.1", "8.14"), ("2.10.0", "8.15"), ("2.11.0", "8.17"), ("2.12.0", "8.20"), ("2.15.0", "8.20")],
)
def test_stored_schema_version(release: str, version: str) -> None:
    """The stored version is reported, although the program is upgraded to the current one."""
    with pt2kit.open(samples.sample(release, "mlp")) as package:
        assert package.stored_schema_version == package.stored["model"].version == version


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(lambda: str(MLP), id="str"),
        pytest.param(lambda: MLP, id="Path"),
        pytest.param(lambda: MLP.read_bytes(), id="bytes"),
        pytest.param(lambda: memoryview(MLP.read_bytes()), id="memoryview"),
        pytest.param(lambda: io.BytesIO(MLP.read_bytes()), id="file object"),
        pytest.param(lambda: f"file://{MLP}", id="URL"),
    ],
)
def test_sources(source) -> None:
    """A path, bytes, a file object and a URL give the same package."""
    with pt2kit.open(source()) as package, pt2kit.open(MLP) as expected:
        assert package.programs["model"] == expected.programs["model"]
        found = numbers(package.weights())
        assert found == numbers(expected.weights())


def test_nothing_is_read_before_it_is_asked_for() -> None:
    """A damaged program hurts when it is asked for, not when the file is opened; so do damaged weights."""
    data = bytearray(MLP.read_bytes())
    with pt2kit.open(MLP) as package:
        for record in (names.model_json("model"), names.weight(0)):
            data[package.archive.data_offset(package.layout.record(record))] ^= 1
    with pt2kit.open(bytes(data)) as package:
        assert list(package.programs) == ["model"]
        with pytest.raises(IntegrityError, match=r"models/model\.json: expected CRC-32"):
            package.programs["model"]


def test_damaged_weights() -> None:
    """A flipped bit in a weight is found when that weight is read; the others are fine."""
    data = bytearray(MLP.read_bytes())
    with pt2kit.open(MLP) as package:
        data[package.archive.data_offset(package.layout.record(names.weight(0)))] ^= 1
    with pt2kit.open(bytes(data)) as package:
        first, second, *_ = package.weights().values()
        assert second.numpy().size
        with pytest.raises(IntegrityError, match=r"weight_0: expected CRC-32"):
            first.numpy()


def test_what_was_read_outlives_the_package() -> None:
    """Tensors stay valid after the package is closed, those that were not read before included."""
    with pt2kit.open(MLP) as package:
        views = package.weights()
        expected = numbers(views)
    with pt2kit.open(MLP) as package:
        read = {name: view.numpy() for name, view in package.weights().items()}
    assert {name: array.tobytes() for name, array in read.items()} == expected


def test_what_is_let_go_of_is_freed_at_once() -> None:
    """A package whose parts were all read is in no circle, so it does not wait for the garbage collector."""
    package = pt2kit.open(samples.sample("2.13.0", "extra_files"))
    read = [package.programs["model"], package.weights(), package.constants(), package.sample_inputs()]
    read += [numbers(package.weights()), *map(bytes, package.extra_files.values())]
    assert len(read) == 7
    gone, archive_gone = weakref.ref(package), weakref.ref(package.archive)
    gc.disable()
    try:
        del package
        read.clear()
        assert gone() is None
        assert archive_gone() is None
    finally:
        gc.enable()


def test_several_models() -> None:
    """Each model of an archive has its own program, weights and sample inputs; the others' are not touched."""
    with pt2kit.open(samples.sample("2.13.0", "multi_model_package")) as package:
        assert list(package.programs) == ["model", "second"]
        assert set(package.weights()) == {"a.weight", "a.bias", "b.weight", "b.bias"}
        assert set(package.weights("second")) == {"weight", "bias"}
        args, kwargs = present(package.sample_inputs("second"))
        assert ([view.sizes for view in args], kwargs) == ([(5, 8)], {})


@pytest.mark.parametrize("ask", ["weights", "constants", "sample_inputs", "unknown"])
def test_no_such_model(ask: str) -> None:
    """A program that is not there is an ArchiveError, wherever it is asked for."""
    with (
        pt2kit.open(MLP) as package,
        pytest.raises(ArchiveError, match="expected a program, one of 'model', got 'nope'"),
    ):
        getattr(package, ask)("nope")


def test_extra_files() -> None:
    """Extra files come by the names that their user gave, folders in them included."""
    with pt2kit.open(samples.sample("2.13.0", "extra_files")) as package:
        assert {name: bytes(data) for name, data in package.extra_files.items()} == {
            "note.txt": b"hello",
            "dir/info.json": b'{"a": 1}',
        }
        with pytest.raises(KeyError, match=r"expected an extra file, one of .*, got \'nope\'"):
            package.extra_files["nope"]


def test_compiled_code_alone() -> None:
    """A package of compiled code without a program opens; reading a program is an error."""
    changes = {names.model_json("model"): None, names.aotinductor("m", "m.so"): b"code"}
    with pt2kit.open(rewritten(MLP, changes)) as package:
        assert (list(package.programs), package.producer) == ([], "torch 2.9 and later")
        assert repr(package) == "<Package '<bytes>': no programs>"
        with pytest.raises(
            ArchiveError,
            match=r"^<bytes>: expected a program, got an archive without one: it has compiled code alone \(of m\)",
        ):
            _ = package.stored_schema_version


def test_repr_names_file_and_models() -> None:
    """A package says what it is."""
    with pt2kit.open(samples.sample("2.13.0", "multi_model_package")) as package:
        assert repr(package).endswith("multi_model_package.pt2': 'model', 'second'>")


def test_a_failed_opening_closes_the_file() -> None:
    """A file that is no package is closed."""
    file = io.BytesIO(b"nothing")
    with pytest.raises(ArchiveError, match=r"expected a \.pt2 file, got a text.*\[A2\]"):
        pt2kit.open(file)
    file.close()


def test_threads() -> None:
    """Threads that share a package get the same objects, in any order."""
    with pt2kit.open(MLP) as package:

        def read(_: int) -> tuple[int, int, bytes]:
            view = package.weights()[
                "fc1.weight" if "fc1.weight" in package.weights() else next(iter(package.weights()))
            ]
            return id(package.programs["model"]), id(view), instance(pt2kit.TensorView, view).tobytes()

        assert len(set(in_threads(read, range(8)))) == 1


@pytest.mark.parametrize("release", ["2.9.1", "2.13.0"])
def test_reading_a_program_enters_each_layer_once(release: str) -> None:
    """A program is read by code of at most 20 files, also a large one and one with unknown keys."""
    largest = max(samples.corpus(release), key=lambda path: path.stat().st_size)
    for path in (samples.sample(release, "mlp"), largest):
        read = partial(COMMANDS["program"], str(path))
        read()
        assert len(trace(read).files) <= 20
