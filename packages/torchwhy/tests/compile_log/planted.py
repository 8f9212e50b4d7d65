"""Functions with one cause of a graph break or of recompilations each, at the line marked `# planted`.

A guard on an argument has no line of its own in PyTorch's log: the function that takes it is named.
"""

import gc
from types import SimpleNamespace

import torch

PLANTS = []


def plant(slug, reason, calls, where=None):
    """Note a function with the rule that is to name it, words of PyTorch's reason, and the arguments of its calls.

    `where`: the function whose line is to be named, if that is another one.
    """

    def note(function):
        noted = {"slug": slug, "reason": reason, "calls": calls, "function": function}
        PLANTS.append(SimpleNamespace(**noted, where=where or function))
        return function

    return note


def ones(*sizes, **options):
    return torch.ones(*sizes or (4,), **options)


def four_times():
    return [(ones(),)] * 4


@plant("graph-breaks", "operator `print`", four_times)
def prints_in_the_middle(x):
    y = x.sin()
    print("in the middle")  # planted
    return y.cos()


@plant("graph-breaks", r"Tensor\.item\(\)", four_times)
def takes_a_number(x):
    y = x.sin()
    number = y.sum().item()  # planted
    return y * number


@plant("graph-breaks", "[Dd]ata-dependent branching", four_times)
def branches_on_a_value(x):
    y = x.sin()
    if y.sum() > 0:  # planted
        return y.cos()
    return y.tan()


@plant("graph-breaks", r"gc\.collect", four_times)
def calls_an_unknown_builtin(x):
    y = x.sin()
    gc.collect()  # planted
    return y.cos()


@plant("graph-breaks", "operator `print`", four_times)
def breaks_in_a_loop(x):
    for _ in range(2):
        x = x + 1
        print("in a loop")  # planted
    return x


@plant("recompiles", "size mismatch at index 0. expected 4, actual 5", lambda: [(ones(4),), (ones(5),), (ones(5),)])
def meets_another_size(x):
    return x.sin()


@plant("recompiles", "n == 2", lambda: [(ones(), 2), (ones(), 3), (ones(), 3)])
def takes_an_int(x, n):
    return x * n  # planted


@plant("recompiles", r"f == 2\.5", lambda: [(ones(), 2.5), (ones(), 3.5), (ones(), 3.5)])
def takes_a_float(x, f):
    return x * f  # planted


@plant("recompiles", "dtype mismatch. expected Float, actual Double", lambda: [(ones(),), (ones().double(),)])
def meets_another_type(x):
    return x.sin()


@plant("recompiles", "stride mismatch", lambda: [(ones(4, 4),), (ones(4, 4).t(),)])
def meets_another_layout(x):
    return x.sin()


@plant("recompiles", "requires_grad mismatch", lambda: [(ones(),), (ones(requires_grad=True),)])
def meets_a_gradient(x):
    return x.sin()


@plant("recompiles", "device", lambda: [(ones(),), (ones(device="meta"),)])
def meets_another_device(x):
    return x.sin()


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5

    def forward(self, x):
        return x * self.scale


def changing_module():
    module = Scaled()
    for scale in (0.5, 1.5, 1.5):
        module.scale = scale
        yield ones(), module


@plant("recompiles", r"scale == 0\.5", changing_module)
def reads_an_attribute_that_changes(x, module):
    return x * module.scale  # planted


@plant("recompiles", r"len\(numbers\) == 1", lambda: [(ones(), [1.0]), (ones(), [1.0, 2.0])])
def takes_a_longer_list(x, numbers):
    return x + sum(numbers)  # planted


def scaled_by(number):
    def closure(x):
        return x * number  # planted

    return closure


@plant("recompiles", "cell_contents == 2", lambda: [(ones(), scaled_by(2)), (ones(), scaled_by(3))], scaled_by(2))
def calls_another_closure(x, closure):
    return closure(x)


@plant("recompiles", "GLOBAL_STATE changed: grad_mode", lambda: [(ones(),), (ones(), torch.no_grad())])
def meets_another_grad_mode(x):
    return x.sin()


@plant("compiled-but-eager", "mode == ", lambda: [(ones(), f"mode {i}") for i in range(24)])
def has_too_many_variants(x, mode):
    return x.sin() if mode else x  # planted
