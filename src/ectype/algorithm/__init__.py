"""The paper: the sequential loop, its policies (what to ask, keep, remember, train), and the network it trains."""
