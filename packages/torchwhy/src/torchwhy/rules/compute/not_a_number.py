"""Results that are not numbers."""

from __future__ import annotations

from collections.abc import Iterator

from torchwhy.finding import Finding
from torchwhy.rules.compute.tried import lines_of, place_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.contents import calls_of, contents
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted

__all__ = ["not_a_number"]


@rule("D78", "not-a-number", source="samples of costly operators' results", frees="nothing")
def not_a_number(trace: Trace, *, most: float = 0.9, steps: int = 3) -> Iterator[Finding]:
    """The parameters have become NaN, and with them all that is computed.

    Sees: in steps after the recorded ones, `torchwhy profile` samples 512 numbers of each result of the operators that
    take 50 us or more. In three steps or more, and 90% of the calls in forward passes that were examined, the whole
    sample was NaN, and so was a parameter's sample.

    Costs: the whole run from there on: a parameter that is NaN makes each result and each gradient NaN, and no step of
    an optimizer makes it a number again. Mending it saves no time, so none is at stake, and the finding comes first.

    Fix: find the first step with a NaN loss: `assert loss.isfinite()`, then `torch.autograd.set_detect_anomaly(True)`,
    which names the operator. Often the learning rate is too high, gradients need `torch.nn.utils.clip_grad_norm_`, or
    something takes a logarithm, a root or a quotient of 0.

    Known problems: the steps that were examined come after the first ones; which operator made the first NaN is not
    seen. The recorded steps may come before it.
    """
    window = trace.derived(steady_window)
    forward = [one for one in trace.derived(contents).trials if one.stack >= 0]
    bad = [one for one in forward if one.undefined]
    looks, undefined = sum(one.looks for one in forward), sum(one.undefined for one in bad)
    with_weights = [one for one in bad if one.weights and one.steps >= steps]
    if not with_weights or undefined < most * looks:
        return
    rows, _, _ = calls_of(trace, {one.called: 1.0 for one in with_weights})
    yield Finding(
        title="The parameters are NaN: nothing that is computed means anything",
        severity="high",
        confidence="high",
        window=window,
        evidence=(*lines_of(trace, with_weights), *evidence(trace, rows)),
        cause=f"In {undefined} of {counted(looks, 'call')} that were examined, the result was NaN, and so were "
        f"parameters that it was computed from.{place_of(trace, with_weights)}",
        fix="Stop at the first NaN: assert loss.isfinite() in the loop. Then torch.autograd.set_detect_anomaly(True) "
        "names the operator that makes it. Usual reasons: too high a learning rate, gradients that need "
        "clip_grad_norm_, a logarithm, root or quotient of 0.",
    )
