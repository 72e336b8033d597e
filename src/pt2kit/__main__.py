"""The command `pt2`, and `python -m pt2kit`: an interrupt ends it quietly from its first import on."""

import sys

INTERRUPTED = 130
"""What shells give for a process that Ctrl-C ended: 128, and the number of the signal."""


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
