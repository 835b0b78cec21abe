"""How a run asks and learns: one module for each method, and what methods share."""
