"""Fidelity with a confidence bound, where copy and original differ, and why a target was missed."""
