"""A run: its settings, its plan, the copying itself, its result, and its directory."""
