"""The command `pt2`: one file per subcommand. Text by default, `--json` for scripts.

Exit codes: 0 fine, 1 a problem or a difference was found, 2 could not run.
"""
