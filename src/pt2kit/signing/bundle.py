"""Sigstore bundles of names and digests: a DSSE envelope over an in-toto statement, by OpenSSF's model-signing.

model-signing signs manifests of files; its `hashing.Config` defines how they are made. Here that returns a manifest
of a package's meaning (`statement.py`), named `pt2kit-digest-3`, so that tools for files alone refuse the statement
by its name instead of finding everything changed. A signature over the file's bytes is model-signing's own, and its
command verifies it. model-signing handles keys, certificates and identities: nothing here computes or compares a
signature.

`sign` writes a signature next to a file; `verify` checks that a file is unchanged since it was signed.
"""

from __future__ import annotations

import base64
import binascii
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, TypeAlias

from pt2kit import codec
from pt2kit.digests.result import DEFINITION
from pt2kit.errors import JsonError, LimitError, SignatureError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.package.open import open_package
from pt2kit.signing.statement import Difference, Verified, differences, left_out, not_covered, statement
from pt2kit.zip.listing import is_url
from pt2kit.zip.source import Progress, no_progress
from pt2kit.zip.target import replacing

HASHING: Final = f"pt2kit-digest-{DEFINITION}"
"""Name of the digests of a statement over the meaning; the number is that of `docs/digest.md`."""
DEFINITIONS: Final = MappingProxyType({HASHING: DEFINITION, "pt2kit-digest-1": 2})
"""Name in a statement -> definition of its digests; statements over definition 2 were named after its encoding, 1."""
MAX_SIGNATURE: Final = 1 << 28
"""Limit of a signature's bytes: a weight takes about 200 of them."""


def _signing(
    config: Any,
    key: Path | None,
    password: str | None,
    certificate: Path | None,
    chain: tuple[Path, ...],
    identity_token: str | None,
) -> Any:
    """Return a `signing.Config` of model-signing that signs by a certificate with its key, a key, or an identity."""
    if certificate is not None:
        # model-signing 1.1 fails on an empty chain; the certificate once more changes nothing.
        return config.use_certificate_signer(
            private_key=key, signing_certificate=certificate, certificate_chain=chain or (certificate,)
        )
    if key is not None:
        return config.use_elliptic_key_signer(private_key=key, password=None if password is None else password.encode())
    # Without a token, the environment's (a CI run's) or the browser's is requested.
    return config.use_sigstore_signer(identity_token=identity_token, use_ambient_credentials=identity_token is None)


def _trusting(config: Any, key: Path | None, chain: tuple[Path, ...], identity: str | None, issuer: str | None) -> Any:
    """Return a `verifying.Config` of model-signing that trusts a key, roots of certificates, or an identity."""
    if key is not None:
        return config.use_elliptic_key_verifier(public_key=key)
    if chain:
        return config.use_certificate_verifier(certificate_chain=chain)
    return config.use_sigstore_verifier(identity=identity, oidc_issuer=issuer)


def claim(signature: bytes, where: str) -> tuple[str, Mapping[str, str]]:
    """Read the contents of a bundle without trusting them.

    Returns:
        the name of its hashing method, and resource name -> hexadecimal digits.

    Raises:
        SignatureError: it is no bundle over a statement of model-signing.
    """
    try:
        envelope = codec.parse(signature, where)["dsseEnvelope"]
        statement = codec.parse(base64.b64decode(envelope["payload"], validate=True), f"{where}: the signed statement")
        predicate = statement["predicate"]
        digests = {row["name"]: row["digest"] for row in predicate["resources"]}
        hashing = predicate["serialization"]["hash_type"]
    except (KeyError, TypeError, ValueError, IndexError, binascii.Error, JsonError, LimitError) as error:
        raise SignatureError(f"{where}: expected a signature (a sigstore bundle), got what is none: {error}") from error
    if not isinstance(hashing, str) or not all(isinstance(text, str) for row in digests.items() for text in row):
        raise SignatureError(f"{where}: expected names and digests as text, got something else")
    if len(digests) != len(predicate["resources"]):
        raise SignatureError(f"{where}: expected each name once, got one twice")
    return hashing, digests


def file_digests(file: Path, hashing: str, where: str) -> dict[str, str]:
    """Return the digests of a file's bytes, as model-signing names and makes them.

    Raises:
        OSError: the file cannot be read.
        SignatureError: a way of hashing that model-signing does not have.
    """
    library = _library()
    with _as_errors_of_ours(where):
        file_manifest = library.hashing.Config().use_file_serialization(hashing_algorithm=hashing).hash(file)
        return {row.identifier: row.digest.digest_hex for row in file_manifest.resource_descriptors()}


def _stating(library: SimpleNamespace, stated: Mapping[str, str], name: str) -> Any:
    """Return a `hashing.Config` whose manifest has the given names and digests, whatever file it is asked about."""
    manifest = library.manifest
    kind = manifest.SerializationType.from_args({"method": "files", "hash_type": HASHING, "allow_symlinks": False})

    def item(resource: str, digits: str) -> Any:
        try:
            digest = manifest.hashing.Digest("sha256", bytes.fromhex(digits))
        except ValueError as error:
            raise SignatureError(f"{resource}: expected hexadecimal digits, got {quote(digits)}") from error
        return kind.new_item(resource, digest)

    made = manifest.Manifest(Path(name).name, [item(*row) for row in stated.items()], kind)
    if {row.identifier for row in made.resource_descriptors()} != set(stated):
        raise SignatureError(f"{name}: expected names that a statement keeps unchanged, got others")

    class Stating(library.hashing.Config):  # type: ignore[misc, name-defined]
        def hash(self, model_path: Any, *, files_to_hash: Any = None) -> Any:
            return made

    return Stating()


def _library() -> SimpleNamespace:
    try:
        from model_signing import hashing, manifest, signing, verifying
    except ImportError as error:
        raise UnsupportedError(
            f"signatures: expected the package {error.name}, which is not installed: pip install 'pt2kit[sign]'"
        ) from error
    return SimpleNamespace(hashing=hashing, manifest=manifest, signing=signing, verifying=verifying)


@contextmanager
def _as_errors_of_ours(where: str) -> Iterator[None]:
    """Turn the exceptions of model-signing, and the libraries below it, into one error that explains them."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from OpenSSL.crypto import X509StoreContextError
    from sigstore.errors import Error as SigstoreError
    from sigstore.errors import VerificationError

    try:
        yield
    except InvalidSignature as error:
        raise SignatureError(
            f"{where}: expected a statement as it was signed, got one that was changed since, or another key's"
        ) from error
    except X509StoreContextError as error:
        raise SignatureError(
            f"{where}: expected a certificate that leads to one of the roots given, got one that does not: {error}"
        ) from error
    except VerificationError as error:
        raise SignatureError(f"{where}: expected a signature of that identity, got another: {error}") from error
    except SigstoreError as error:
        raise UnsupportedError(f"{where}: expected an answer of sigstore's services, got: {error}") from error
    except UnsupportedAlgorithm as error:
        raise SignatureError(f"{where}: expected an elliptic-curve key, got another kind: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise SignatureError(f"{where}: {_said(error)}") from error


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "Key mismatch" in text:
        return "expected a signature by the key given, got one by another key"
    if "Signature mismatch" in text:
        return "expected the statement that was signed, got another"
    if "curve" in text:
        return "expected an elliptic-curve key (P-256, P-384 or P-521), got another kind"
    return f"expected a signature, keys and certificates that can be used, got: {text or type(error).__name__}"


PathLike: TypeAlias = str | os.PathLike[str]


def sign(
    file: PathLike,
    signature: PathLike | None = None,
    *,
    key: PathLike | None = None,
    password: str | None = None,
    certificate: PathLike | None = None,
    chain: Sequence[PathLike] = (),
    identity_token: str | None = None,
    whole_file: bool = False,
    progress: Progress = no_progress,
) -> Path:
    """Sign a file's meaning, so that it verifies however it is packed: its programs, weights and other records.

    Args:
        file: a path.
        signature: path of the signature; by default next to the file, with `.sig` at the end of its name. Replaced.
        key: an elliptic-curve private key in PEM (P-256, P-384 or P-521). Without a key, an identity signs, which
            needs the network: that of `identity_token`, of the CI run, or one that the browser requests.
        password: of the key.
        certificate: of the key, in PEM, for verifiers that trust a root certificate and not this key.
        chain: certificates between that and the root.
        identity_token: an OpenID Connect token.
        whole_file: sign the bytes of the file instead, as the `model_signing` command does.
        progress: called with the bytes of tensors done and in all.

    Returns:
        the path of the signature.

    Raises:
        OSError: a file cannot be read or written.
        UnsupportedError: model-signing is not installed, the file holds no program, or sigstore cannot be reached.
        SignatureError: the key or certificate cannot be used.
        Pt2Error: the file cannot be read.

    Cost: reads all of the file once.
    """
    source = _file(file)
    target = Path(signature) if signature is not None else source.with_name(source.name + ".sig")
    if target.suffix.lower() == ".pt2" or (target.exists() and target.samefile(source)):
        raise UnsupportedError(f"{target}: expected the path of a signature, such as {source.name}.sig, got a program")
    if certificate is not None and key is None:
        raise SignatureError(f"{certificate}: expected the certificate's private key with it, got none")
    library = _library()
    config = library.signing.Config()
    if not whole_file:
        with open_package(source) as package:
            stated = statement(package, progress=progress)
        config = config.set_hashing_config(_stating(library, stated, source.name))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "signature")
        with _as_errors_of_ours("signing"):
            signer = _signing(config, _path(key), password, _path(certificate), tuple(map(Path, chain)), identity_token)
            signer.sign(source if whole_file else source.name, made)
        with replacing(target) as new:
            new.write(made.read_bytes())
    return target


def verify(
    file: PathLike,
    signature: PathLike | None = None,
    *,
    key: PathLike | None = None,
    chain: Sequence[PathLike] = (),
    identity: str | None = None,
    issuer: str | None = None,
    whole_file: bool = False,
    progress: Progress = no_progress,
) -> Verified:
    """Verify that a file is what a trusted signer has signed; changed weights are named.

    Args:
        file: a path.
        signature: the signature; by default next to the file, with `.sig` at the end of its name.
        key: the public key in PEM that is trusted.
        chain: or the root certificates in PEM.
        identity, issuer: or the identity and its issuer, as for sigstore.
        whole_file: accept only a signature over the bytes of the file.
        progress: called with the bytes of tensors done and in all.

    Returns:
        the comparison of the file; true if it is as signed.

    Raises:
        OSError: a file cannot be read; the signature is missing.
        SignatureError: it is not by a trusted signer, was changed since, or is no signature.
        UnsupportedError: no trust anchor was passed, model-signing is not installed, or sigstore cannot be reached.
        Pt2Error: the file cannot be read.

    Cost: reads all of the file once, after the signature was verified.
    """
    source = _file(file)
    place = Path(signature) if signature is not None else source.with_name(source.name + ".sig")
    if sum((key is not None, bool(chain), identity is not None and issuer is not None)) != 1:
        raise UnsupportedError(
            f"{place}: expected one trust anchor: a public key (--key), root certificates (--chain), "
            "or an identity (--identity, --issuer)"
        )
    if (size := place.stat().st_size) > MAX_SIGNATURE:
        raise SignatureError(f"{place}: expected at most {MAX_SIGNATURE} bytes of signature, got {size}")
    signed = place.read_bytes()
    hashing, claimed = claim(signed, str(place))
    if whole_file and hashing in DEFINITIONS:
        raise SignatureError(f"{place}: expected a signature over the bytes of the file, got one over what it means")
    library = _library()
    config = library.verifying.Config().set_hashing_config(_stating(library, claimed, "claimed"))
    with tempfile.TemporaryDirectory() as folder, _as_errors_of_ours(str(place)):
        copy = Path(folder, "signature")  # so that the bytes that were read are those that are verified
        copy.write_bytes(signed)
        _trusting(config, _path(key), tuple(map(Path, chain)), identity, issuer).verify("claimed", copy)
    if hashing not in DEFINITIONS:
        digests = file_digests(source, hashing, str(place))
        changed = Difference("the bytes of the file", *(next(iter(one.values()), None) for one in (claimed, digests)))
        return Verified("bytes", () if digests == claimed else (changed,))
    with open_package(source) as package:
        digests = statement(package, progress=progress, definition=DEFINITIONS[hashing])
        differing = tuple(differences(claimed, digests))
        return Verified("meaning", differing, left_out(claimed, digests), not_covered(package))


def _file(given: PathLike) -> Path:
    if os.fspath(given) == "-" or is_url(os.fspath(given)):
        got = "a URL: download" if is_url(os.fspath(given)) else "the standard input: save"
        raise UnsupportedError(f"FILE: expected a path, got {got} the file first, and its signature")
    return Path(given)


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)
