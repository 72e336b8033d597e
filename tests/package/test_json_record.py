"""Small files that unfold to much: values and nodes are counted against the bytes that they take in the file."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.samples import corpus, sample

import pt2kit
from pt2kit.errors import LimitError
from pt2kit.package import programs

MLP = sample("2.13.0", "mlp")
NODE = b'{"target":"torch.ops.aten.relu.default","inputs":[],"outputs":[],"metadata":{}},'


def with_text(change: Callable[[bytes], bytes], record: str = "models/model.json", *, deflate: bool = True) -> bytes:
    """The file with another text in a record."""
    out = io.BytesIO()
    with zipfile.ZipFile(MLP) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            is_it = name.endswith(record)
            kind = zipfile.ZIP_DEFLATED if is_it and deflate else zipfile.ZIP_STORED
            target.writestr(name, change(data) if is_it else data, kind)
    return out.getvalue()


def before(mark: bytes, text: bytes) -> Callable[[bytes], bytes]:
    """A change that puts text after the first mark."""
    return lambda data: data.replace(mark, mark + text, 1)


BOMBS = {
    "unknown key": lambda data: data.rstrip()[:-1] + b',"later":[{}' + b",{}" * 900_000 + b"]}",
    "unknown key inside": before(b'"nodes": [{', b'"later":[[]' + b",[]" * 900_000 + b"],"),
    "numbers": lambda data: data.rstrip()[:-1] + b',"later":[0.5' + b",0.5" * 1_200_000 + b"]}",
    "texts": lambda data: data.rstrip()[:-1] + b',"later":["a"' + b',"b"' * 1_200_000 + b"]}",
    "another type": before(b'"inputs": [', b"[]," * 900_000),
    "arguments": before(b'"inputs": [', b'{"as_ints":[0' + b",0" * 1_200_000 + b"]},"),
    "escaped keys": before(b'"nodes": [', NODE.replace(b"target", b"\\u0074arget") * 30_000),
    "nodes": before(b'"nodes": [', NODE * 30_000),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_values(bomb: str) -> None:
    """Each is refused by its number of values, before an object of them is built."""
    data = with_text(BOMBS[bomb])
    assert len(data) < 200_000
    with pytest.raises(
        LimitError, match=r"models/model\.json: expected at most [\d,]+ (values|nodes) .* got"
    ) as caught:
        pt2kit.open(data).programs["model"]
    assert caught.value.rule == "A18"
    assert "A18" in [problem.rule for problem in pt2kit.check(data)]


def test_payload_configs() -> None:
    """The lists of weights and constants have the same budget."""
    data = with_text(
        lambda text: text.rstrip()[:-1] + b',"later":[{}' + b",{}" * 900_000 + b"]}", "weights_config.json"
    )
    with pytest.raises(LimitError, match=r"expected at most [0-9,]+ values"):
        pt2kit.open(data).weights()


def test_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are counted in subgraphs as well, against the bytes of the record."""
    monkeypatch.setattr(programs, "FREE_NODES", 1)
    monkeypatch.setattr(programs, "BYTES_PER_NODE", 10**6)
    for name in ("cond", "mlp"):
        with (
            pytest.raises(LimitError, match="expected at most 1 nodes"),
            pt2kit.open(sample("2.13.0", name)) as package,
        ):
            package.programs["model"]


def test_tree_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of different tree specs are counted, against the bytes of the record."""
    monkeypatch.setattr(programs, "FREE_NODES", 100)
    monkeypatch.setattr(programs, "BYTES_PER_NODE", 10**6)

    def change(entries: int) -> Callable[[bytes], bytes]:
        def changed(data: bytes) -> bytes:
            tree = json.loads(data)
            call = tree["graph_module"]["module_call_graph"][0]
            leaf = '{"type": null, "context": null, "children_spec": []}'
            call["signature"]["out_spec"] = f"[1, {leaf}]" + " " * 5000 * entries
            call["signature"]["in_spec"] = f"[1, [{', '.join([leaf] * entries)}]]"
            tree["graph_module"]["module_call_graph"] += [{**call, "fqn": "again"}] * 3
            return json.dumps(tree).encode()

        return changed

    with pt2kit.open(with_text(change(99))) as package:
        assert package.programs["model"]
    with (
        pytest.raises(LimitError, match="expected at most 100 entries of tree specs in a record of this size"),
        pt2kit.open(with_text(change(100))) as package,
    ):
        package.programs["model"]


def with_metadata(*texts: str) -> bytes:
    """A file whose nodes have these module stacks, and a long text that counts for nothing."""

    def change(data: bytes) -> bytes:
        tree = json.loads(data)
        tree["guards_code"] = ["1 == 1" + " " * 10_000]
        for node, text in zip(tree["graph_module"]["graph"]["nodes"], texts, strict=False):
            node["metadata"] = {"nn_module_stack": text}
        return json.dumps(tree).encode()

    return with_text(change)


def test_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries and lines of different texts are counted together, against the bytes of the record."""
    monkeypatch.setattr(programs, "FREE_NODES", 100)
    monkeypatch.setattr(programs, "FREE_PARTS", 1000)
    for texts in (("a,b,c;" * 900, "a,b,c;" * 900), ("\n" * 900,), ("{" * 900,)):
        with pt2kit.open(with_metadata(*texts)) as package:
            assert package.programs["model"]
    for texts in (("a,b,c;" * 9000,), ("a,b,c;" * 5000, "d,e,f;" * 5000), ("\n" * 9000,), ("{" * 9000,)):
        with (
            pytest.raises(LimitError, match=r"expected at most [0-9,]+ entries of stacks and lines of traces"),
            pt2kit.open(with_metadata(*texts)) as package,
        ):
            package.programs["model"]


def test_described_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of value tables are counted, against the bytes of the record; twice as many as nodes are allowed."""
    monkeypatch.setattr(programs, "FREE_NODES", 100)
    monkeypatch.setattr(programs, "BYTES_PER_NODE", 10**6)

    def change(entries: int) -> Callable[[bytes], bytes]:
        def changed(data: bytes) -> bytes:
            tree = json.loads(data)
            table = tree["graph_module"]["graph"]["tensor_values"]
            table |= {f"k{number}": next(iter(table.values())) for number in range(entries - len(table))}
            return json.dumps(tree).encode()

        return changed

    with pt2kit.open(with_text(change(200))) as package:
        assert package.programs["model"]
    with (
        pytest.raises(LimitError, match="expected at most 200 described values in a record of this size"),
        pt2kit.open(with_text(change(201))) as package,
    ):
        package.programs["model"]


def test_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Different expressions are counted by their characters, against the bytes of the record."""
    monkeypatch.setattr(programs, "FREE_NODES", 100)
    monkeypatch.setattr(programs, "FREE_EXPRESSIONS", 0)

    def change(data: bytes) -> bytes:
        tree = json.loads(data)
        for meta in tree["graph_module"]["graph"]["tensor_values"].values():
            text = " + ".join(f"{number}*s0" for number in range(100 + len(tree), 3000))
            tree[text[:7]] = None
            meta["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}
        return json.dumps(tree).encode()

    with (
        pytest.raises(LimitError, match=r"expected expressions of at most [0-9,]+ characters together"),
        pt2kit.open(with_text(change)) as package,
    ):
        package.programs["model"]


def test_what_stands_in_texts_is_no_value() -> None:
    """Brackets and commas in a long text do not count, nor do quotes in it."""
    text = b'\\"{[,' * 1_000_000
    data = with_text(lambda data: data.rstrip()[:-1] + b',"later":"' + text + b'\\\\"}')
    with pt2kit.open(data) as package:
        assert package.unknown() == ("models/model.json: $.later",) or len(package.unknown()) == 1


def test_stored_text_may_have_as_many_values_as_it_has_bytes_for() -> None:
    """A record that takes its bytes in the file has budget for all of its values."""
    data = with_text(lambda text: text.rstrip()[:-1] + b',"later":[0' + b",0" * 1_500_000 + b"]}", deflate=False)
    with pt2kit.open(data) as package:
        assert len(package.unknown()) == 1


def test_real_files_are_far_from_it() -> None:
    """No program of the corpus has half of the values per byte that are allowed beyond the free ones."""
    paths = [Path(path) for path in corpus()] if callable(corpus) else []
    for path in paths[::7]:
        if not zipfile.is_zipfile(path):
            continue
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith("model.json"):
                    packed = max(entry.compress_size if entry.compress_type else entry.file_size // 60, 1)
                    assert programs._count(archive.read(entry), 0) / packed < programs.VALUES_PER_BYTE
