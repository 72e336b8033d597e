"""`pt2 sign FILE`: a signature over what a file means, or over its bytes."""

from __future__ import annotations

import click

from pt2kit.cli.common import progress
from pt2kit.cli.output import print_lines

EPILOG = """\b
Examples:
  openssl ecparam -name prime256v1 -genkey -noout -out key.pem
  openssl ec -in key.pem -pubout -out public.pem
  pt2 sign model.pt2 --key key.pem                  writes model.pt2.sig
  pt2 verify model.pt2 --key public.pem
  pt2 sign model.pt2 --key key.pem --certificate cert.pem --chain intermediate.pem
  pt2 sign model.pt2                                by who you are, or the CI run is (needs the network)
  pt2 sign model.pt2 --key key.pem --bytes          the file itself, as `model_signing sign` does

\b
Exit codes: 0 signed, 1 the key or certificate cannot be used, 2 could not run.
"""


@click.command("sign", epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option(
    "--output", "-o", "--signature", "signature", metavar="SIG", help="The signature to write.  [default: FILE.sig]"
)
@click.option("--key", metavar="PEM", help="An elliptic-curve private key.")
@click.option("--ask-password", is_flag=True, help="The key is encrypted: ask for its password.")
@click.option("--certificate", metavar="PEM", help="The certificate of the key.")
@click.option("--chain", metavar="PEM", multiple=True, help="A certificate between that and its root.")
@click.option(
    "--identity-token", metavar="TOKEN", envvar="PT2KIT_IDENTITY_TOKEN", help="Of an identity, instead of a key."
)
@click.option("--bytes", "whole_file", is_flag=True, help="Sign the bytes of the file, not what it means.")
def command(
    file: str,
    signature: str | None,
    key: str | None,
    ask_password: bool,
    certificate: str | None,
    chain: tuple[str, ...],
    identity_token: str | None,
    whole_file: bool,
) -> int:
    """Sign a .pt2 file, so that others can tell that its programs and weights are yours, however it is packed."""
    from pt2kit.errors import SignatureError
    from pt2kit.signing.files import sign

    password = click.prompt("Password of the key", hide_input=True, err=True) if ask_password else None
    try:
        with progress(f"signing {file}") as report:
            made = sign(
                file,
                signature,
                key=key,
                password=password,
                certificate=certificate,
                chain=chain,
                identity_token=identity_token,
                whole_file=whole_file,
                progress=report,
            )
    except SignatureError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    print_lines([f"{made}: signs {'the bytes of the file' if whole_file else 'what the file means'}"])
    return 0
