"""Smoke test of an installed pt2kit: run by `make release` and workflows, with its dependencies alone.

    python smoke.py VERSION FILE        in an environment where pt2kit is installed, outside of the checkout

FILE is any `.pt2` with a program `model`. Every command runs in a process of its own; nothing may import PyTorch.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path


def pt2(*args: str, code: int = 0) -> str:
    """Run the installed command, and give what it prints."""
    name = "pt2.exe" if sys.platform == "win32" else "pt2"
    done = subprocess.run(
        [str(Path(sysconfig.get_path("scripts"), name)), *args], capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode != code:
        raise SystemExit(f"pt2 {' '.join(args)}: expected exit code {code}, got {done.returncode}\n{done.stderr}")
    return done.stdout


def main() -> None:
    version, file = sys.argv[1:]
    import pt2kit

    here = Path(pt2kit.__file__).resolve()
    if not here.is_relative_to(Path(sys.prefix).resolve()):
        raise SystemExit(f"expected the installed package, got {here}")
    if pt2kit.__version__ != version or version not in pt2("--version"):
        raise SystemExit(f"expected version {version}, got {pt2kit.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert "forward(" in pt2("show", file)
        pt2("check", file, "--payloads")
        pt2("weights", file, "--to", str(folder / "weights.npz"))
        pt2("sanitize", file, str(folder / "clean.pt2"))
        pt2("convert", file, str(folder / "old.pt2"), "--target", "torch==2.5")
        pt2("edit", file, str(folder / "same.pt2"), "--cast", "bf16")
        pt2("view", file, "--html", str(folder / "page.html"))
        pt2("diff", file, str(folder / "same.pt2"), code=1)
        assert pt2("digest", file, "--only", "program") == pt2("digest", str(folder / "clean.pt2"), "--only", "program")
        pt2("show", str(folder / "no-such.pt2"), code=2)
        with pt2kit.open(folder / "old.pt2") as package:
            assert all(view.numpy().size for view in package.weights().values())
    assert "torch" not in sys.modules
    print(f"pt2kit {version} works in Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
