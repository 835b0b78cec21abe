"""What inputs look like: columns, rules between them, and the distribution that rows are drawn from."""

from understudy.space.space import Space, open_space

__all__ = ["Space", "open_space"]
