"""What inputs look like: columns, rules between them, and the distribution that rows are drawn from."""

from understudy.space.opening import open_space
from understudy.space.space import Space

__all__ = ["Space", "open_space"]
