"""Conditions over raw columns, from which rules, SQL and the differences between copy and original are written."""
