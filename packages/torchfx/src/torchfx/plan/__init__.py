"""Plans of chains: linear time-invariant systems, the steps they collapse to, plans of steps, and their memory."""

from torchfx.plan.cache import (
    WatchedModules,
    assigning,
    call_again,
    changes,
    lapses_by_changes,
    plan_of,
    plan_to_run,
    run_plan,
)
from torchfx.plan.handover import Handover, kept
from torchfx.plan.lowering import NEEDS_WHOLE, gives_of, has_hooks, kind_of, runs_children
from torchfx.plan.lti import LTI
from torchfx.plan.steps import CausalStep, FeatureStep, LateStep, Plan, Running, State, Step

__all__ = [
    "LTI",
    "NEEDS_WHOLE",
    "CausalStep",
    "FeatureStep",
    "Handover",
    "LateStep",
    "Plan",
    "Running",
    "State",
    "Step",
    "WatchedModules",
    "assigning",
    "call_again",
    "changes",
    "gives_of",
    "has_hooks",
    "kept",
    "kind_of",
    "lapses_by_changes",
    "plan_of",
    "plan_to_run",
    "run_plan",
    "runs_children",
]
