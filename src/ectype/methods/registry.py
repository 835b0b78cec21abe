"""The methods, by name, and which of them a plan stands for."""

from __future__ import annotations

from ectype.methods.active import active
from ectype.methods.base import Method
from ectype.methods.bounded import bounded
from ectype.methods.one_shot import one_shot
from ectype.methods.online import online
from ectype.methods.prior import Prior
from ectype.methods.pure import pure
from ectype.methods.sequential import sequential
from ectype.plan.plan import Plan

METHODS: dict[str, Method] = {
    "active": active,
    "bounded": bounded,
    "sequential": sequential,
    "pure": pure,
    "one-shot": one_shot,
    "online": online,
}


def method_of(plan: Plan, prior: Prior) -> Method:
    """The method of a plan. A refresh keeps all answers, as the earlier run's are at hand too."""
    return METHODS["active" if prior.earlier is not None else plan.method]
