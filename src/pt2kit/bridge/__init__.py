"""Live torch programs <-> schema objects and archives. The only room that imports torch (2.13)."""
