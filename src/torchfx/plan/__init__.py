"""What a chain runs: linear time-invariant systems, the steps they collapse to, plans of steps, and their memory."""

from torchfx.plan.cache import changes, plan_of
from torchfx.plan.lti import LTI
from torchfx.plan.plan import Plan, has_hooks, kind_of, runs_children
from torchfx.plan.steps import CausalStep, State, Step

__all__ = ["LTI", "CausalStep", "Plan", "State", "Step", "changes", "has_hooks", "kind_of", "plan_of", "runs_children"]
