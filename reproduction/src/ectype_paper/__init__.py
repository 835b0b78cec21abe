"""The paper's experiments: its problems, the originals it copies, and the sweep over them."""

from ectype_paper.originals import FAMILIES, FAMILY_OF, original
from ectype_paper.problems import Problem, load, names

__all__ = ["FAMILIES", "FAMILY_OF", "Problem", "load", "names", "original"]
