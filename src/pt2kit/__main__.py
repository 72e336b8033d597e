"""Entry point of the command `pt2` and of `python -m pt2kit`; Ctrl-C ends it quietly from its first import on."""

import sys

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells report it: 128 plus the number of the signal."""


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from pt2kit.cli.main import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("error: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
