"""`python -m pt2kit` is the command `pt2`."""

from pt2kit.cli.main import main

if __name__ == "__main__":
    main()
