"""`pt2 verify FILE`: whether a file is what was signed; what is not, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pt2kit.cli.common import json_option, progress
from pt2kit.cli.output import print_json, print_lines
from pt2kit.messages import printable

if TYPE_CHECKING:
    from pt2kit.signing.verified import Verified

EPILOG = """\b
Examples:
  pt2 verify model.pt2 --key public.pem
  pt2 verify model.pt2 --chain root.pem
  pt2 verify model.pt2 --identity me@example.org --issuer https://accounts.google.com
  pt2 verify model.pt2 --key public.pem --bytes     accept only a signature over the bytes

\b
Exit codes: 0 as signed, 1 not as signed, or not by whom is trusted, 2 could not run.
"""


@click.command("verify", epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option("--signature", metavar="SIG", help="The signature.  [default: FILE.sig]")
@click.option("--key", metavar="PEM", help="A trusted public key.")
@click.option("--chain", metavar="PEM", multiple=True, help="Trusted root certificates.")
@click.option("--identity", metavar="WHO", help="The trusted identity.")
@click.option("--issuer", metavar="URL", help="The issuer of the identity.")
@click.option("--bytes", "whole_file", is_flag=True, help="Accept only a signature over the bytes of the file.")
@json_option
def command(
    file: str,
    signature: str | None,
    key: str | None,
    chain: tuple[str, ...],
    identity: str | None,
    issuer: str | None,
    whole_file: bool,
    as_json: bool,
) -> int:
    """Say whether a .pt2 file is what somebody who is trusted has signed, and name what is not."""
    from pt2kit.errors import SignatureError
    from pt2kit.signing.files import verify

    try:
        with progress(f"verifying {file}") as report:
            comparison = verify(
                file,
                signature,
                key=key,
                chain=chain,
                identity=identity,
                issuer=issuer,
                whole_file=whole_file,
                progress=report,
            )
    except SignatureError as error:
        if as_json:
            print_json({"verified": False, "error": str(error)})
        else:
            click.echo(f"error: {printable(str(error), 4000)}", err=True)
        return 1
    if as_json:
        rows = [{"what": one.what, "signed": one.signed, "got": one.got} for one in comparison.differences]
        lists = {"left_out": list(comparison.left_out), "not_covered": list(comparison.not_covered)}
        print_json({"verified": comparison.ok, "signed": comparison.signed, "differences": rows, **lists})
    else:
        print_lines(_lines(file, comparison))
    return 0 if comparison.ok else 1


def _lines(file: str, found: Verified) -> Iterator[str]:
    what = "the bytes of the file" if found.signed == "bytes" else "what the file means"
    count = len(found.differences)
    yield f"{file}: {what}: " + ("as signed" if found.ok else f"{count} difference{'' if count == 1 else 's'}")
    yield from (f"  ~ {one}" for one in found.differences)
    yield from (f"  - {one}: signed, and not there as it was" for one in found.left_out)
    yield from (f"  ? {one}: not part of what was signed" for one in found.not_covered)
