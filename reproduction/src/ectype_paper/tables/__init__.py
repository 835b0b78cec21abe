"""The paper's tables, and what is told of their numbers."""
