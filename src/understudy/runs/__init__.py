"""A run: what it was asked, what it decided, what it made, and the directory that keeps it."""
