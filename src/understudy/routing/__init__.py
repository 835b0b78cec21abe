"""The cascade: which rows a copy answers alone, certified, and which are asked of the original."""
