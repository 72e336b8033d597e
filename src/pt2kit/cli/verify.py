"""`pt2 verify FILE`: verify a signature; name the parts that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pt2kit.cli.common import progress
from pt2kit.cli.frame import Result, ResultOptions, argument, option, print_result
from pt2kit.cli.output import print_json
from pt2kit.messages import count_text

if TYPE_CHECKING:
    from pt2kit.signing.statement import Verified


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 verify`."""

    file: str = argument("FILE", type=None)
    signature: str | None = option("The signature.  [default: FILE.sig]", "SIG")
    key: str | None = option("A trusted public key.", "PEM")
    chain: tuple[str, ...] = option("Trusted root certificates.", "PEM")
    identity: str | None = option("The trusted identity.", "WHO")
    issuer: str | None = option("The issuer of the identity.", "URL")
    whole_file: bool = option("Accept only a signature over the bytes of the file.", "--bytes")


def run(options: Options) -> int:
    """Verify that a trusted signer signed a .pt2 file, and name the parts that differ from what was signed.

    Examples:
      pt2 verify model.pt2 --key public.pem
      pt2 verify model.pt2 --chain root.pem
      pt2 verify model.pt2 --identity me@example.org --issuer https://accounts.google.com
      pt2 verify model.pt2 --key public.pem --bytes     accept only a signature over the bytes

    Exit codes: 0 as signed, 1 not as signed, or not by a trusted signer, 2 could not run.
    """
    from pt2kit.errors import SignatureError
    from pt2kit.signing.bundle import verify

    given = asdict(options)
    file, as_json = given.pop("file"), given.pop("as_json")
    try:
        with progress(f"verifying {file}") as report:
            found = verify(file, **given, progress=report)
    except SignatureError as error:
        if not as_json:
            raise
        print_json({"verified": False, "error": str(error)})
        return 1
    return print_result(Result(_lines(file, found), lambda: _tree(found), int(not found.ok)), as_json)


def _tree(found: Verified) -> dict[str, Any]:
    rows = [{"what": one.what, "signed": one.signed, "got": one.got} for one in found.differences]
    lists = {"left_out": list(found.left_out), "not_covered": list(found.not_covered)}
    return {"verified": found.ok, "signed": found.signed, "differences": rows, **lists}


def _lines(file: str, found: Verified) -> Iterator[str]:
    what = "the bytes of the file" if found.signed == "bytes" else "what the file means"
    yield f"{file}: {what}: {'as signed' if found.ok else count_text(len(found.differences), 'difference')}"
    yield from (f"  ~ {one}" for one in found.differences)
    yield from (f"  - {one}: signed, and missing or changed" for one in found.left_out)
    yield from (f"  ? {one}: not part of what was signed" for one in found.not_covered)
