"""Sign and verify files: write a signature next to a file, and check that a file is unchanged since it was signed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from pt2kit.errors import SignatureError, UnsupportedError
from pt2kit.package.open import open_package
from pt2kit.signing import bundle
from pt2kit.signing.bundle import DEFINITIONS, MAX_SIGNATURE, Signer, Trusted
from pt2kit.signing.statement import Difference, Verified, differences, left_out, not_covered, statement
from pt2kit.zip.source import Progress, no_progress
from pt2kit.zip.target import replacing

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
    source = Path(file)
    target = Path(signature) if signature is not None else source.with_name(source.name + ".sig")
    if certificate is not None and key is None:
        raise SignatureError(f"{certificate}: expected the certificate's private key with it, got none")
    signer = Signer(_path(key), password, _path(certificate), tuple(map(Path, chain)), identity_token)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "signature")
        if whole_file:
            bundle.sign_bytes(source, made, signer)
        else:
            with open_package(source) as package:
                stated = statement(package, progress=progress)
            bundle.sign_statement(stated, source.name, made, signer)
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
    source = Path(file)
    place = Path(signature) if signature is not None else source.with_name(source.name + ".sig")
    trusted = Trusted(_path(key), tuple(map(Path, chain)), identity, issuer)
    if sum((key is not None, bool(chain), identity is not None and issuer is not None)) != 1:
        raise UnsupportedError(
            f"{place}: expected one trust anchor: a public key (--key), root certificates (--chain), "
            "or an identity (--identity, --issuer)"
        )
    if (size := place.stat().st_size) > MAX_SIGNATURE:
        raise SignatureError(f"{place}: expected at most {MAX_SIGNATURE} bytes of signature, got {size}")
    signed = place.read_bytes()
    claimed = bundle.claim(signed, str(place))
    if whole_file and claimed.hashing in DEFINITIONS:
        raise SignatureError(f"{place}: expected a signature over the bytes of the file, got one over what it means")
    bundle.authenticate(claimed, signed, str(place), trusted)
    if claimed.hashing not in DEFINITIONS:
        digests = bundle.file_digests(source, claimed.hashing, str(place))
        changed = Difference(
            "the bytes of the file", *(next(iter(one.values()), None) for one in (claimed.digests, digests))
        )
        return Verified("bytes", () if digests == claimed.digests else (changed,))
    with open_package(source) as package:
        digests = statement(package, progress=progress, definition=DEFINITIONS[claimed.hashing])
        differing = tuple(differences(claimed.digests, digests))
        return Verified("meaning", differing, left_out(claimed.digests, digests), not_covered(package))


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)
