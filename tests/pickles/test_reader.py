"""torch.save payloads as a whole: real ones, hostile ones, other kinds of files, and bytes at random."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pickles.pickle_forge import FLOATS, MAGIC, Build, Call, Ref, encode, payload, stream, tensor, zipped
from tests.samples import corpus, hostile, release_id, sample

from pt2kit.errors import ArchiveError, IntegrityError, LimitError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.pickles import values as pv
from pt2kit.pickles.reader import globals_in, is_plain, read_payload
from pt2kit.zip.reader import open_archive

CASES = [case for case in hostile() if case["category"] == "pickle"]


def payloads(path: Path) -> Iterator[tuple[str, bytes]]:
    """The records of a file that torch unpickles: torch.save zips, and pickled objects among the constants."""
    with open_archive(path) as archive:
        for name in archive.records:
            content = bytes(archive.read(name))
            if content[:4] == b"PK\x03\x04" or "_obj_" in name or name.endswith(".pt"):
                yield name, content


def walk(value: Any) -> Iterator[Any]:
    """Every value inside a value, for callers that want to touch them all."""
    yield value
    if isinstance(value, dict):
        inner: Any = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    else:
        inner = getattr(value, "values", ()) if isinstance(value, pv.NamedTuple) else ()
    for item in inner:
        yield from walk(item)


@pytest.mark.parametrize("path", corpus(), ids=release_id)
def test_real_payloads_are_read(path: Path) -> None:
    """Everything that any release pickled into its files is read, and every storage is where its tensor needs it."""
    for name, content in payloads(path):
        for part in walk(read_payload(content, name)):
            if isinstance(part, pv.PickledTensor):
                assert part.storage.read().nbytes == part.storage.nbytes


def test_a_real_state_dict() -> None:
    """Weights of 2.8: names, kinds, and which of them share a storage."""
    (weights,) = [c for n, c in payloads(sample("2.8.0", "shared_weights")) if n.endswith("data/weights/model.pt")]
    ours = read_payload(weights, "data/weights/model.pt")
    assert [(name, part.kind) for name, part in ours.items()] == [
        ("emb.weight", "parameter"),
        ("out.weight", "parameter"),
        ("base", "tensor"),
        ("tail", "tensor"),
        ("mat_t", "tensor"),
    ]
    assert ours["emb.weight"].storage is ours["out.weight"].storage
    assert ours["base"].storage is ours["tail"].storage is ours["mat_t"].storage
    assert (ours["tail"].sizes, ours["tail"].storage_offset) == ((6,), 4)


def test_named_tuples_of_user_classes() -> None:
    """A named tuple of a class that nobody has is described, and reported as something torch would import."""
    (inputs,) = [c for n, c in payloads(sample("2.13.0", "namedtuple_io")) if n.endswith("data/sample_inputs/model.pt")]
    args, kwargs = read_payload(inputs, "data/sample_inputs/model.pt")
    assert (args[0].class_name, len(args[0].values), kwargs) == ("make.NT", 2, {})
    assert [name for name in globals_in(inputs, "x.pt") if not is_plain(name)] == ["make.NT"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_hostile_files(case: dict[str, Any]) -> None:
    """Each hostile payload is refused under the name of what it would run, and runs nothing."""
    refused = []
    for name, content in payloads(case["path"]):
        try:
            read_payload(content, name)
        except UnsupportedError as error:
            refused.append(str(error))
            assert "io.open" in globals_in(content, name)
    assert refused
    assert all("io.open" in message for message in refused)
    assert not Path(case["marker"]).exists()


def touch(marker: Path) -> str:
    return f"touch {marker}"


def attacks(marker: Path) -> dict[str, tuple[bytes, str]]:
    """Streams that run `touch <marker>` or the like when unpickled, and the global each is refused for."""
    command = touch(marker)
    args = encode((command,))
    text = lambda name: b"\x8c" + bytes([len(name)]) + name  # noqa: E731
    system = b"cos\nsystem\n"
    return {
        "GLOBAL": (system + args + b"R.", "os.system"),
        "GLOBAL of Python 2": (b"c__builtin__\neval\n" + args + b"R.", "builtins.eval"),
        "GLOBAL that is dropped": (system + args + b"R0N.", "os.system"),
        "GLOBAL before the break": (system + args + b"R\xff", "os.system"),
        "GLOBAL before the cut": (system + args + b"R", "os.system"),
        "GLOBAL before STOP": (system + args + b"R" + b"N.", "os.system"),
        "GLOBAL not called": (system + b".", "os.system"),
        "STACK_GLOBAL": (text(b"os") + text(b"system") + b"\x93" + args + b"R.", "os.system"),
        "STACK_GLOBAL from the memo": (
            text(b"os")
            + b"\x94"
            + text(b"path")
            + b"\x940"
            + text(b"system")
            + b"\x9400"
            + b"h\x00h\x02\x93"
            + args
            + b"R.",
            "os.system",
        ),
        "STACK_GLOBAL from an overwritten memo": (
            text(b"collections") + b"q\x000" + text(b"os") + b"q\x000h\x00" + text(b"system") + b"\x93" + args + b"R.",
            "os.system",
        ),
        "STACK_GLOBAL with escapes": (b"S'\\x6f\\163'\nVs\\u0079stem\n\x93" + args + b"R.", "os.system"),
        "STACK_GLOBAL with a dotted name": (
            text(b"os") + text(b"path.os.system") + b"\x93" + args + b"R.",
            "os.path.os",
        ),
        "INST": (b"(" + encode(command) + b"ios\nsystem\n.", "os.system"),
        "OBJ": (b"(" + system + encode(command) + b"o.", "os.system"),
        "NEWOBJ": (b"csubprocess\nPopen\n" + args + b"\x81.", "subprocess.Popen"),
        "NEWOBJ_EX": (b"csubprocess\nPopen\n)}" + encode("args") + encode(command) + b"s\x92.", "subprocess.Popen"),
        "NEWOBJ and BUILD": (b"cm\nC\n" + args + b"\x81}b.", "m.C"),
        "NEWOBJ and APPEND": (b"cm\nC\n" + args + b"\x81Na.", "m.C"),
        "NEWOBJ and SETITEM": (b"cm\nC\n" + args + b"\x81NNs.", "m.C"),
        "NEWOBJ and ADDITEMS": (b"cm\nC\n" + args + b"\x81(N\x90.", "m.C"),
        "NEWOBJ of nothing": (b"cm\nC\n)\x81.", "m.C"),
        "BUILD with __setstate__": (b"cm\nC\n)\x81}" + encode("__setstate__") + system + b"sb.", "os.system"),
        "BUILD then call": (
            b"cm\nC\n)\x81q\x00}" + encode("__setstate__") + system + b"sb0h\x00" + encode(command) + b"b.",
            "os.system",
        ),
        "getattr": (
            b"c__builtin__\ngetattr\nc__builtin__\n__import__\n"
            + encode(("os",))
            + b"R"
            + encode("system")
            + b"\x86R"
            + args
            + b"R.",
            "builtins.getattr",
        ),
        "extension registry": (b"\x82\x05" + args + b"R.", "copyreg._inverted_registry"),
        "copyreg": (b"ccopy_reg\n_reconstructor\n" + args + b"R.", "copyreg._reconstructor"),
        "torch.load inside": (
            encode(Call("torch.storage._load_from_bytes", (b"",))) + b".",
            "torch.storage._load_from_bytes",
        ),
        "class of a wrapper": (
            encode(Call("torch._utils._rebuild_wrapper_subclass", (Ref("m.C"),))) + b".",
            "m.C",
        ),
        "in the arguments of a tensor": (b"(" + system + args + b"R" + encode(tensor()) + b"t.", "os.system"),
        "as the type of a tensor": (
            encode(Call("torch._tensor._rebuild_from_type_v2", (Ref("torch.Size"), Ref("m.T"), (), {}))) + b".",
            "m.T",
        ),
        "in a persistent id": (system + args + b"RQ.", "os.system"),
        "in a key": (b"}" + system + args + b"RNs.", "os.system"),
        "in hooks": (encode(tensor(hooks={"a": Ref("os.system")})) + b".", "os.system"),
        "module with control characters": (b"cos\x1b[2J\r\nsystem\n)R.", r"os\x1b[2J\r.system"),
    }


@pytest.mark.parametrize("name", attacks(Path("marker")))
def test_attacks(name: str, tmp_path: Path) -> None:
    """Whatever the way, a global outside the allow-list is refused by name, listed, and never used."""
    marker = tmp_path / "marker"
    pickled, path = attacks(marker)[name]
    for whole in (payload(pickled), pickled):
        with pytest.raises(UnsupportedError) as caught:
            read_payload(whole, "data/x.pt")
        assert str(caught.value).startswith("data/x.pt: ")
        assert path in str(caught.value)
        assert str(caught.value).isprintable()
        assert any(not is_plain(found) for found in globals_in(whole, "data/x.pt"))
    assert not marker.exists()
    assert "m" not in sys.modules


def test_all_refused_globals_are_named_at_once() -> None:
    """The message has every name, sorted; a long list ends in the number of the others."""
    pickled = stream([Ref("z.Z"), Ref("a.A"), Call("m.M", (tensor(),)), Ref("a.A")])
    with pytest.raises(UnsupportedError, match=r"refers to a\.A, m\.M, z\.Z; unpickling would import"):
        read_payload(payload(pickled), "x.pt")
    with pytest.raises(UnsupportedError, match=r"refers to m\.C0, m\.C1, .* and 80 more;"):
        read_payload(payload(stream([Ref(f"m.C{i}") for i in range(100)])), "x.pt")


def test_trust_reads_descriptions() -> None:
    """A trusted class is described by everything that would have been done with it; nothing is done."""
    made = b"cm\nC\n" + encode((1,)) + b"}" + encode("k") + b"K\x02s\x92" + b"(K\x03K\x04e" + b"(K\x05K\x06u" + b"}b."
    ours = read_payload(payload(made), "x.pt", trust={"m.C"})
    assert (ours.cls, ours.args, ours.kwargs) == (pv.Global("m", "C"), (1,), {"k": 2})
    assert (ours.items, ours.pairs, ours.state, ours.built) == ([3, 4], [(5, 6)], {}, True)
    ours = read_payload(payload(stream(Call("os.system", ("true",)))), "x.pt", trust={"os.system"})
    assert (ours.cls.path, ours.args, ours.built) == ("os.system", ("true",), False)
    with pytest.raises(UnsupportedError, match=r"refers to m\.D;"):
        read_payload(payload(stream([Call("m.C"), Call("m.D")])), "x.pt", trust={"m.C"})


def test_a_state_is_set_once() -> None:
    with pytest.raises(PayloadError, match=r"m\.C: expected one state, got a second one"):
        read_payload(payload(stream(Build(Build(Call("m.C"), {}), {}))), "x.pt", trust={"m.C"})


def test_trust_does_not_replace_the_allow_list() -> None:
    """Trusting a name of the allow-list changes nothing, and trusted calls do not make tensors."""
    ours = read_payload(payload(stream(tensor())), "x.pt", trust={"torch._utils._rebuild_tensor_v2"})
    assert isinstance(ours, pv.PickledTensor)
    call = Call("torch._utils._rebuild_parameter", (Call("m.C"), True, None))
    with pytest.raises(PayloadError, match="expected a tensor, got a Opaque"):
        read_payload(payload(stream(call)), "x.pt", trust={"m.C"})


def test_marks_of_dynamic_dimensions() -> None:
    """Traces of `mark_dynamic` on a sample input are data, although they are a class of torch."""
    span = Build(Call("torch._dynamo.decorators._DimRange", opcode=b"\x81"), [0, 2, 8])
    ours = read_payload(payload(stream(Call("builtins.set", ([span],)))), "x.pt")
    assert next(iter(ours)).state == [0, 2, 8]


SCRIPT = {"archive/data.pkl": stream(1), "archive/byteorder": b"little"}
OTHER_FILES: dict[str, tuple[bytes, type[Pt2Error], str]] = {
    "nothing": (b"", PayloadError, r"expected a zip of torch.save \(starting 50 4b 03 04\), got an empty file"),
    "text": (b"hello", PayloadError, "got a text file"),
    "JSON": (b'{"a": 1}', PayloadError, "got a text file"),
    "bare pickle": (pickle.dumps([1]), UnsupportedError, "got a bare pickle; save its content again"),
    "bare pickle of protocol 0": (pickle.dumps([1], 0), UnsupportedError, "got a bare pickle; save its content again"),
    "bare pickle that runs code": (
        b"cos\nsystem\n(S'x'\ntR.",
        UnsupportedError,
        "a bare pickle that refers to os.system",
    ),
    "broken bare pickle": (b"\x80\x04", UnsupportedError, "got a bare pickle"),
    "zip behind a pickle": (b"\x80\x02N." + payload(stream(1)), UnsupportedError, "got a bare pickle"),
    "before torch 1.6": (
        b"\x80\x02" + MAGIC + b".\x80\x02M\xe9\x03." + stream({}) + stream(tensor()) + stream(["0"]) + FLOATS,
        UnsupportedError,
        "a file of the form that torch wrote before 1.6; save",
    ),
    "before torch 1.6, with code": (
        b"\x80\x04" + MAGIC + b"." + stream(1001) + stream({}) + stream(tensor()) + stream(Call("os.system", ("x",))),
        UnsupportedError,
        "wrote before 1.6 that refers to os.system",
    ),
    "no data.pkl": (
        zipped({"archive/version": b"3"}),
        PayloadError,
        "one root folder with data.pkl, .* got archive/version",
    ),
    "empty zip": (zipped({}), PayloadError, "starting 50 4b 03 04"),
    "data.pkl without root": (zipped({"data.pkl": stream(1)}), PayloadError, "one root folder with data.pkl"),
    "two roots": (zipped({"a/data.pkl": stream(1), "b/data.pkl": stream(2)}), PayloadError, "one root folder"),
    "TorchScript": (
        zipped({**SCRIPT, "archive/constants.pkl": b""}),
        UnsupportedError,
        "a TorchScript archive",
    ),
    "TorchScript code": (
        zipped({**SCRIPT, "archive/code/a.py": b""}),
        UnsupportedError,
        "a TorchScript archive",
    ),
    "big-endian": (payload(stream(1), byteorder=b"big"), UnsupportedError, "byteorder: expected little, got big"),
    "no endian": (
        payload(stream(1), byteorder=b"middle"),
        PayloadError,
        "byteorder: expected little or big, got b'middle'",
    ),
    "long byteorder": (payload(stream(1), byteorder=b"l" * 99), PayloadError, "byteorder: .* got 99 bytes"),
    "cut zip": (payload(stream(1))[:-30], ArchiveError, "x.pt"),
    "damaged stream": (payload(stream("abc")).replace(b"abc", b"abd"), IntegrityError, "CRC-32"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_are_named(name: str) -> None:
    content, error, text = OTHER_FILES[name]
    with pytest.raises(error, match=text) as caught:
        read_payload(content, "x.pt")
    assert str(caught.value).startswith("x.pt")


def test_a_tar_file_is_named() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        made.addfile(tarfile.TarInfo("pickle"))
    for use in (read_payload, globals_in):
        with pytest.raises(PayloadError, match=r"x\.pt: .* got a tar archive"):
            use(buffer.getvalue(), "x.pt")


def test_globals_of_other_files() -> None:
    """Payloads that torch would unpickle are scanned in any form; others are an error."""
    listed = {n: globals_in(case[0], "x.pt") for n, case in OTHER_FILES.items() if n.startswith(("bare", "zip behind"))}
    assert listed.pop("bare pickle that runs code") == ("os.system",)
    assert set(listed.values()) == {()}
    legacy = globals_in(OTHER_FILES["before torch 1.6, with code"][0], "x.pt")
    assert {"os.system", "torch.FloatStorage"} < set(legacy)
    for name in ("nothing", "text", "no data.pkl", "TorchScript", "cut zip"):
        with pytest.raises(OTHER_FILES[name][1], match=OTHER_FILES[name][2]):
            globals_in(OTHER_FILES[name][0], "x.pt")
    with pytest.raises(PayloadError, match="the stream is cut off"):
        globals_in(payload(stream(tensor())[:-1]), "x.pt")


def test_a_payload_without_byteorder_is_little_endian() -> None:
    """torch before 2.1 did not write it."""
    whole = zipped({"archive/data.pkl": stream(tensor()), "archive/data/0": FLOATS})
    assert bytes(read_payload(whole, "x.pt").storage.read()) == FLOATS


def test_storages_are_read_when_asked_for() -> None:
    """A damaged storage hinders nobody who does not look at it."""
    whole = payload(stream([tensor(), "a"])).replace(FLOATS, FLOATS[::-1])
    ours = read_payload(whole, "x.pt")
    assert ours[0].sizes == (4,)
    with pytest.raises(IntegrityError, match=r"x\.pt: .*data/0"):
        _ = ours[0].storage.read()


def test_a_view_of_another_archive_is_enough() -> None:
    """A payload may be a view into a larger buffer; nothing of it is copied."""
    outer = bytearray(b"x" * 64 + payload(stream(tensor())))
    ours = read_payload(memoryview(outer).toreadonly()[64:], "x.pt")
    assert bytes(ours.storage.read()) == FLOATS
    place = outer.index(FLOATS)
    outer[place : place + 4] = b"\0\0\0\0"
    assert bytes(ours.storage.read()[:4]) == b"\0\0\0\0"


@pytest.mark.bare
def test_nothing_heavy_is_imported() -> None:
    """Reading needs neither numpy nor torch."""
    code = (
        "import sys; from pt2kit.pickles.reader import read_payload\n"
        "read_payload(sys.stdin.buffer.read(), 'x.pt')\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'pickle')))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=payload(stream(tensor())), check=False)
    assert done.returncode == 0


SEEDS = [
    pickled
    for release, name in [
        ("2.1.2", "dtypes"),
        ("2.4.1", "sparse_buffer"),
        ("2.8.0", "shared_weights"),
        ("2.8.0", "float8"),
        ("2.13.0", "namedtuple_io"),
    ]
    for record, pickled in payloads(sample(release, name))
]
SNIPPETS = [
    b"(",
    b")",
    b"R",
    b"b",
    b"Q",
    b"t",
    b"\x81",
    b"h\x00",
    b"q\x00",
    b"0",
    b"]",
    b"}",
    b"s",
    b"e",
    b"\x93",
    b"K\xff",
]
FUZZ = settings(max_examples=300, deadline=None)


def mutate(data: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    for kind, place, given_bytes in edits:
        at = int(place * len(data))
        if kind == "replace":
            data = data[:at] + given_bytes + data[at + len(given_bytes) :]
        elif kind == "insert":
            data = data[:at] + given_bytes + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + len(given_bytes) :]
        else:
            data = data[:at] + data[at // 2 : at] + data[at:]
    return data


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "replace", "insert", "delete", "repeat"]),
        st.floats(0, 1),
        st.binary(min_size=1, max_size=4) | st.sampled_from(SNIPPETS),
    ),
    min_size=1,
    max_size=4,
)


def use(content: bytes) -> None:
    """Read a payload and touch all of it; only our errors may come of that."""
    try:
        for part in walk(read_payload(content, "x.pt")):
            if isinstance(part, pv.PickledTensor):
                _ = part.storage.read()
    except Pt2Error as error:
        assert str(error).startswith("x.pt")
    try:
        globals_in(content, "x.pt")
    except Pt2Error as error:
        assert str(error).startswith("x.pt")


def split(content: bytes) -> tuple[bytes, dict[str, bytes]]:
    with open_archive(content) as archive:
        records = {name.split("/", 1)[1]: bytes(archive.read(name)) for name in archive.records}
    return records.pop("data.pkl"), records


@FUZZ
@given(st.sampled_from([split(seed) for seed in SEEDS]), EDITS)
def test_mutated_streams(seed: tuple[bytes, dict[str, bytes]], edits: list[tuple[str, float, bytes]]) -> None:
    use(payload(mutate(seed[0], edits), {}, **seed[1]))


@FUZZ
@given(st.sampled_from(SEEDS), EDITS)
def test_mutated_files(seed: bytes, edits: list[tuple[str, float, bytes]]) -> None:
    use(mutate(seed, edits))


@FUZZ
@given(st.lists(st.sampled_from([*SNIPPETS, encode(tensor()), b"N", b"\x80\x04", b"l", b"d", b"u"]), max_size=30))
def test_random_opcodes(parts: list[bytes]) -> None:
    use(payload(b"".join(parts) + b"."))


def test_limits_are_errors_of_their_own() -> None:
    with pytest.raises(LimitError, match="at most 134217728, got 4294967295"):
        read_payload(payload(b"B\xff\xff\xff\xff."), "x.pt")
