"""How alike copy and original decide, how sure that is, where they differ, and why a target was missed."""
