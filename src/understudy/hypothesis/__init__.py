"""The families a copy may belong to."""
