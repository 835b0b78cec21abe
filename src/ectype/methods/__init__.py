"""How queries are chosen: acquisition functions, and the committee that votes."""
