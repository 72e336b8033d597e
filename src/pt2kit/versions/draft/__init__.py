"""The design draft of the format, which no release wrote: graph modules with their weights <-> programs of schema 1."""
