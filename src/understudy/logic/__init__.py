"""If-then over raw columns: what rules, SQL and the differences between copy and original are written in."""
