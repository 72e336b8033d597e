"""Signed files verify however they are packed; changed ones, or with another's key, do not, with the reason."""

from __future__ import annotations

import base64
import json
import shutil
import zipfile
from functools import partial
from pathlib import Path

import pytest
from tests import samples
from tests.signing.keys import Keys, make_keys, needs_signing, openssl

import pt2kit
from pt2kit.errors import SignatureError, UnsupportedError
from pt2kit.signing import bundle
from pt2kit.signing.statement import statement

pytest.importorskip("model_signing", reason="pip install 'pt2kit[sign]' brings it")
pytestmark = needs_signing


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Keys of the one who signs."""
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of a sample file."""
    return Path(shutil.copy(samples.sample("2.13.0", "dynamic_batch"), tmp_path / "model.pt2"))


def zipped_anew(path: Path, target: Path, method: int, **replaced: bytes) -> Path:
    """The same records, deflated or stored, in another order; some with other bytes."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for entry in sorted(old.infolist(), key=lambda one: one.filename, reverse=True):
            last = entry.filename.rpartition("/")[2].replace(".", "_")
            new.writestr(entry.filename, replaced.get(last, old.read(entry)), compress_type=method)
        for name, data in replaced.items():
            if name.startswith("new_"):
                new.writestr(f"{entry.filename.partition('/')[0]}/extra/{name}", data)
    return target


@pytest.mark.parametrize("curve", ["prime256v1", "secp384r1", "secp521r1"])
def test_signed_by_a_key(tmp_path: Path, model: Path, curve: str) -> None:
    """Each curve that model-signing has; the signature is next to the file by default."""
    keys = make_keys(tmp_path / "keys", curve=curve)
    assert pt2kit.sign(model, key=keys.private) == tmp_path / "model.pt2.sig"
    found = pt2kit.verify(model, key=keys.public)
    assert found
    assert (found.signed, found.differences, found.left_out) == ("meaning", (), ())


def test_signed_by_an_encrypted_key(tmp_path: Path, model: Path, keys: Keys) -> None:
    """With its password; without, the error names it."""
    locked = tmp_path / "locked.pem"
    openssl(tmp_path, "ec", "-in", str(keys.private), "-aes128", "-passout", "pass:open", "-out", str(locked))
    pt2kit.sign(model, key=locked, password="open")
    assert pt2kit.verify(model, key=keys.public)
    with pytest.raises(SignatureError, match=r"signing: expected a signature, keys and .*[Pp]assword"):
        pt2kit.sign(model, key=locked)


def test_signed_by_a_certificate(model: Path, keys: Keys, tmp_path: Path) -> None:
    """Who trusts the root trusts the signature; who trusts another root does not."""
    pt2kit.sign(model, key=keys.private, certificate=keys.certificate)
    assert pt2kit.verify(model, chain=[keys.root])
    other = make_keys(tmp_path / "other", "other")
    with pytest.raises(SignatureError, match="expected a certificate that leads to one of the roots given"):
        pt2kit.verify(model, chain=[other.root])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_packed_otherwise_it_verifies(model: Path, keys: Keys, tmp_path: Path, method: int) -> None:
    """Other bytes, the same meaning."""
    signature = pt2kit.sign(model, key=keys.private)
    again = zipped_anew(model, tmp_path / "again.pt2", method)
    assert again.read_bytes() != model.read_bytes()
    found = pt2kit.verify(again, signature, key=keys.public)
    assert found
    assert found.left_out == ()


@pytest.mark.parametrize("strip", [(), ("traces",), ("metadata",)])
def test_sanitized_and_stripped_it_verifies(model: Path, keys: Keys, tmp_path: Path, strip: tuple[str, ...]) -> None:
    """Records that were left out are listed."""
    signature = pt2kit.sign(model, key=keys.private)
    pt2kit.sanitize(model, tmp_path / "clean.pt2", strip=strip)
    found = pt2kit.verify(tmp_path / "clean.pt2", signature, key=keys.public)
    assert found
    assert "record 'data/sample_inputs/model.pt'" in found.left_out
    assert ("metadata of 'model'" in found.left_out) == bool(strip)


def test_a_changed_weight_is_named(model: Path, keys: Keys, tmp_path: Path) -> None:
    """One number of one weight."""
    signature = pt2kit.sign(model, key=keys.private)
    with pt2kit.edit(model) as editor:
        numbers = editor.weights["a.weight"].numpy().copy()
        numbers[3, 4] += 1
        editor.set_weight("a.weight", numbers)
    pt2kit.write(editor.result, tmp_path / "changed.pt2")
    found = pt2kit.verify(tmp_path / "changed.pt2", signature, key=keys.public)
    assert not found
    assert [one.what for one in found.differences] == ["weight 'a.weight' of 'model'"]


def test_what_comes_beside_the_programs_is_no_part_of_what_was_signed(model: Path, keys: Keys, tmp_path: Path) -> None:
    """A pickle in place of the sample inputs, and a new file: PyTorch would unpickle the one and give out the other."""
    signature = pt2kit.sign(model, key=keys.private)
    hostile = samples.DATA / "hostile" / "000_pickle_sample_inputs.pt2"
    with zipfile.ZipFile(hostile) as archive:
        [name] = [one for one in archive.namelist() if one.endswith("sample_inputs/model.pt")]
        pickle = archive.read(name)
    changed = zipped_anew(model, tmp_path / "x.pt2", zipfile.ZIP_STORED, model_pt=pickle, new_note=b"hello")
    found = pt2kit.verify(changed, signature, key=keys.public)
    assert [one.what for one in found.differences] == [
        "record 'data/sample_inputs/model.pt'",
        "record 'extra/new_note'",
    ]


def test_another_key_is_refused(model: Path, keys: Keys, tmp_path: Path) -> None:
    """The error says that it is the key."""
    pt2kit.sign(model, key=keys.private)
    other = make_keys(tmp_path / "other", "other")
    with pytest.raises(
        SignatureError, match=r"model\.pt2\.sig: expected a signature by the key given, got one by another"
    ):
        pt2kit.verify(model, key=other.public)


def test_a_statement_that_was_changed_is_refused(model: Path, keys: Keys) -> None:
    """A digest in the statement exchanged, and one taken out: the signature is no longer of it."""
    place = pt2kit.sign(model, key=keys.private)
    bundle = json.loads(place.read_text())
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    resources = statement["predicate"]["resources"]
    for change in (lambda: resources[0].update(digest="0" * 64), resources.pop):
        change()
        bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
        place.write_text(json.dumps(bundle))
        with pytest.raises(SignatureError, match=r"model\.pt2\.sig: expected .*statement"):
            pt2kit.verify(model, key=keys.public)


def test_the_statement_has_the_numbers_of_the_digest(model: Path, keys: Keys) -> None:
    """The signature is over an in-toto statement with the digests of `pt2 digest`."""
    bundle = json.loads(pt2kit.sign(model, key=keys.private).read_text())
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    found = {row["name"]: row["digest"] for row in statement["predicate"]["resources"]}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert found["models/model/program"] == pt2kit.digest(model).program.removeprefix("sha256:")
    assert statement["predicate"]["serialization"]["hash_type"] == "pt2kit-digest-3"


def test_signatures_over_the_second_definition(model: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are verified by that definition, and still find a change."""
    with monkeypatch.context() as older:
        older.setattr(bundle, "statement", partial(statement, definition=2))
        older.setattr(bundle, "HASHING", "pt2kit-digest-1")
        pt2kit.sign(model, key=keys.private)
    assert pt2kit.verify(model, key=keys.public)
    with pt2kit.edit(model) as editor:
        editor.set_weight("a.weight", editor.weights["a.weight"].numpy() + 1)
    pt2kit.write(editor.result, model)
    assert [one.what for one in pt2kit.verify(model, key=keys.public).differences] == ["weight 'a.weight' of 'model'"]


def test_the_bytes_of_the_file(model: Path, keys: Keys, tmp_path: Path) -> None:
    """Signed as model-signing does: its own verification accepts it, and another packing is another file."""
    from model_signing import verifying

    signature = pt2kit.sign(model, key=keys.private, whole_file=True)
    verifying.Config().use_elliptic_key_verifier(public_key=keys.public).verify(model, signature)
    found = pt2kit.verify(model, key=keys.public, whole_file=True)
    assert (found.ok, found.signed) == (True, "bytes")
    again = zipped_anew(model, tmp_path / "again.pt2", zipfile.ZIP_DEFLATED)
    found = pt2kit.verify(again, signature, key=keys.public)
    assert [one.what for one in found.differences] == ["the bytes of the file"]


def test_bytes_that_are_asked_for_are_not_replaced_by_a_meaning(model: Path, keys: Keys) -> None:
    """Who wants the file itself does not get less; and model-signing refuses our statement by its name."""
    from model_signing import verifying

    signature = pt2kit.sign(model, key=keys.private)
    with pytest.raises(
        SignatureError, match="expected a signature over the bytes of the file, got one over what it means"
    ):
        pt2kit.verify(model, key=keys.public, whole_file=True)
    with pytest.raises(ValueError, match="pt2kit-digest-3"):
        verifying.Config().use_elliptic_key_verifier(public_key=keys.public).verify(model, signature)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"no json", b'{"dsseEnvelope": {"payload": "!"}}', b'{"dsseEnvelope": {"payload": "e30="}}'],
)
def test_what_is_no_signature_is_refused(model: Path, keys: Keys, content: bytes) -> None:
    """One error, with the name of the file."""
    model.with_name("model.pt2.sig").write_bytes(content)
    with pytest.raises(SignatureError, match=r"model\.pt2\.sig.*: expected"):
        pt2kit.verify(model, key=keys.public)


def test_somebody_must_be_trusted(model: Path, keys: Keys) -> None:
    """A key, roots, or an identity with its issuer: none of them, or two, is no question."""
    pt2kit.sign(model, key=keys.private)
    for asked in ({}, {"identity": "me"}, {"key": keys.public, "chain": [keys.root]}):
        with pytest.raises(UnsupportedError, match="expected one trust anchor"):
            pt2kit.verify(model, **asked)


@pytest.mark.parametrize(
    ("place", "got"),
    [
        ("https://example.org/model.pt2?token=secret", "a URL: download"),
        ("s3://bucket/model.pt2", "a URL: download"),
        ("-", "the standard input: save"),
    ],
)
def test_only_paths_are_signed(place: str, got: str, keys: Keys) -> None:
    """A URL is no path, nor is the standard input; the message has no secrets of a URL."""
    with pytest.raises(UnsupportedError, match=f"expected a path, got {got} the file first, and its signature"):
        pt2kit.sign(place, key=keys.private)
    with pytest.raises(UnsupportedError, match=f"expected a path, got {got} the file first, and its signature"):
        pt2kit.verify(place, key=keys.public)


def test_a_missing_signature_is_a_missing_file(model: Path, keys: Keys) -> None:
    """As any file that is not there."""
    with pytest.raises(FileNotFoundError, match=r"model\.pt2\.sig"):
        pt2kit.verify(model, key=keys.public)


@pytest.mark.parametrize("kind", [["ed25519"], ["rsa"], ["ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"]])
def test_a_key_of_another_kind_is_refused(model: Path, tmp_path: Path, kind: list[str]) -> None:
    """RSA, Ed25519 and other curves are not what model-signing takes; nothing is written."""
    openssl(tmp_path, "genpkey", "-algorithm", *kind, "-out", "other.pem")
    with pytest.raises(SignatureError, match=r"signing: expected an elliptic-curve key \(P-256, P-384 or P-521\)"):
        pt2kit.sign(model, key=tmp_path / "other.pem")
    assert not model.with_name("model.pt2.sig").exists()


@pytest.mark.parametrize("name", ["model.pt2", "other.pt2"])
def test_a_program_is_not_replaced_by_a_signature(model: Path, keys: Keys, name: str) -> None:
    before = model.read_bytes()
    with pytest.raises(UnsupportedError, match=r"expected the path of a signature, such as model\.pt2\.sig, got"):
        pt2kit.sign(model, model.with_name(name), key=keys.private)
    assert model.read_bytes() == before


@pytest.mark.parametrize("release", ["2.1.2", "2.5.1", "2.8.0", "2.15.0"])
def test_files_of_other_releases(release: str, keys: Keys, tmp_path: Path) -> None:
    """Every layout is signed alike."""
    model = Path(shutil.copy(samples.sample(release, "mlp"), tmp_path / "model.pt2"))
    pt2kit.sign(model, key=keys.private)
    assert pt2kit.verify(model, key=keys.public)
