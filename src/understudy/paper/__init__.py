"""The paper's experiments: its problems, and the originals it copies."""

from understudy.paper.originals import FAMILIES, FAMILY_OF, original
from understudy.paper.problems import Problem, load, names

__all__ = ["FAMILIES", "FAMILY_OF", "Problem", "load", "names", "original"]
