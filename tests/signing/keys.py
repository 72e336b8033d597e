"""Keys and certificates that the `openssl` command makes, as a user would."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")
needs_signing = pytest.mark.skipif(OPENSSL is None, reason="the openssl command makes the keys")


@dataclass(frozen=True)
class Keys:
    """A private key, its public one, and a certificate of it below a root."""

    private: Path
    public: Path
    certificate: Path
    root: Path


def openssl(folder: Path, *args: str) -> None:
    subprocess.run([OPENSSL or "openssl", *args], cwd=folder, check=True, capture_output=True)


def make_keys(folder: Path, name: str = "me", curve: str = "prime256v1") -> Keys:
    """Make a key pair, a root, and a certificate for signing that the root has signed."""
    folder.mkdir(parents=True, exist_ok=True)
    for who in (name, f"{name}-root"):
        openssl(folder, "ecparam", "-name", curve, "-genkey", "-noout", "-out", f"{who}.pem")
    openssl(folder, "ec", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")
    (folder / "root.ext").write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n")
    (folder / "leaf.ext").write_text("keyUsage=digitalSignature\nextendedKeyUsage=codeSigning\n")
    root, request = f"{name}-root", f"{name}.csr"
    openssl(folder, "req", "-new", "-key", f"{root}.pem", "-subj", f"/CN={root}", "-out", f"{root}.csr")
    extend = ["-days", "30", "-extfile", "root.ext"]
    openssl(folder, "x509", "-req", "-in", f"{root}.csr", "-signkey", f"{root}.pem", *extend, "-out", f"{root}.crt")
    openssl(folder, "req", "-new", "-key", f"{name}.pem", "-subj", f"/CN={name}", "-out", request)
    issued = ["-CA", f"{root}.crt", "-CAkey", f"{root}.pem", "-CAcreateserial", "-days", "30", "-extfile", "leaf.ext"]
    openssl(folder, "x509", "-req", "-in", request, *issued, "-out", f"{name}.crt")
    return Keys(*(folder / one for one in (f"{name}.pem", f"{name}.pub", f"{name}.crt", f"{root}.crt")))
