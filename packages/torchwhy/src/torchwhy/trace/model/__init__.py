"""A trace: events, lanes, call tree, launches and their work, steps, the window."""
