"""A simulator of training programs that knows the truth: a judge of the trace reader.

`draw` makes a program from a seed, with planted faults that can be taken out again; `simulate` runs it and returns a
record of what host and device did at each moment and why the device was idle; `chrome` writes that as `torch.profiler`
does; `saving` runs the program once more without a fault. None of it knows the rules. `python -m tests.simulator`, from
`packages/torchwhy`, prints how far the trace reader agrees.
"""

from tests.simulator.faults import FAULTS
from tests.simulator.program import Program, draw
from tests.simulator.run import Run, saving, simulate

__all__ = ["FAULTS", "Program", "Run", "draw", "saving", "simulate"]
