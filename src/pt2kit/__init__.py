"""pt2kit: read, write, check, convert and compare PyTorch `.pt2` files, with and without PyTorch."""

__version__ = "0.1.0.dev0"
