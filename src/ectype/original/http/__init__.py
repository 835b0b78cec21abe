"""Originals behind HTTP: asked with care, since every request is paid for and any of them may fail."""
