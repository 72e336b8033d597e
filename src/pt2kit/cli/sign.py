"""`pt2 sign FILE`: sign the meaning of a file, or its bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import click

from pt2kit.cli.common import progress
from pt2kit.cli.frame import argument, option
from pt2kit.cli.output import print_lines


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 sign`."""

    file: str = argument("FILE", type=None)
    signature: str | None = option(
        "The signature to write.  [default: FILE.sig]", "--output", "-o", "--signature", "SIG"
    )
    key: str | None = option("An elliptic-curve private key.", "PEM")
    ask_password: bool = option("The key is encrypted: ask for its password.")
    certificate: str | None = option("The certificate of the key.", "PEM")
    chain: tuple[str, ...] = option("A certificate between that and its root.", "PEM")
    identity_token: str | None = option(
        "Sign with the token of an identity, instead of a key.", "TOKEN", envvar="PT2KIT_IDENTITY_TOKEN"
    )
    whole_file: bool = option("Sign the bytes of the file, not its meaning.", "--bytes")


def run(options: Options) -> int:
    """Sign a .pt2 file, so that others can verify that its programs and weights are yours, however it is packed.

    Examples:
      openssl ecparam -name prime256v1 -genkey -noout -out key.pem
      openssl ec -in key.pem -pubout -out public.pem
      pt2 sign model.pt2 --key key.pem                  writes model.pt2.sig
      pt2 verify model.pt2 --key public.pem
      pt2 sign model.pt2 --key key.pem --certificate cert.pem --chain intermediate.pem
      pt2 sign model.pt2                                as yourself, or as the CI run (needs the network)
      pt2 sign model.pt2 --key key.pem --bytes          the file itself, as `model_signing sign` does

    Exit codes: 0 signed, 1 the key or certificate cannot be used, 2 could not run.
    """
    from pt2kit.signing.bundle import sign

    given = asdict(options)
    file = given.pop("file")
    wants_password = given.pop("ask_password")
    password = click.prompt("Password of the key", hide_input=True, err=True) if wants_password else None
    with progress(f"signing {file}") as report:
        signature = sign(file, **given, password=password, progress=report)
    print_lines([f"{signature}: signs {'the bytes of the file' if options.whole_file else 'what the file means'}"])
    return 0
