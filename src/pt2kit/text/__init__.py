"""Programs, packages and problems -> readable text. Plain text: colour is the command line's business."""
