"""Step 2 of the paper: fit the copy to the sample set, for as long as a schedule says.

>>> steps(200).in_all(n=1000, batch=32), plain(10).in_all(n=1000, batch=32)
(200, 320)
"""

from ectype.algorithm.training.schedule import PLAIN, Schedule, annealed, plain, staged, steps
from ectype.algorithm.training.trainer import Train, Trained, Trainer

__all__ = ["PLAIN", "Schedule", "Train", "Trained", "Trainer", "annealed", "plain", "staged", "steps"]
