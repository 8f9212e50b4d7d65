"""Repeated computations, compared with a judge that keeps a copy of everything and compares all of it."""

import os
import random
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from torchwhy.capture import contents
from torchwhy.capture.contents import ContentsWatch, may_watch
from torchwhy.counters.accumulator import Tally
from torchwhy.counters.dispatch_mode import OperatorMode

PLENTY = 10**12  # nanoseconds


class Judged(ContentsWatch):
    """A watch beside a judge.

    `calls`: of each operator the name, whether the watch called it a repetition, and whether one call before had
    exactly the same inputs, all bits of them, and the same results.
    """

    def __init__(self):
        super().__init__(PLENTY)
        self.calls = []
        self.kept = set()

    def claims(self):
        return sum(site.again for site in self._sites.values())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        values = tree_leaves((args, kwargs or {}))
        rest = [value for value in values if not isinstance(value, torch.Tensor)]
        inputs, before = bits(values), self.claims()
        result = super().__torch_dispatch__(func, types, args, kwargs)
        call = str(func), repr(rest), inputs, bits(tree_leaves(result))
        self.calls.append((func._schema.name, self.claims() > before, call in self.kept))
        self.kept.add(call)
        return result


def bits(values):
    tensors = [value.detach() for value in values if isinstance(value, torch.Tensor)]
    return tuple(
        (one.dtype, one.shape, one.resolve_conj().resolve_neg().clone().contiguous().numpy().tobytes())
        for one in tensors
    )


def program(seed):
    """A random program of some steps, made of what may fool a watch; it yields after each step."""
    choose = random.Random(seed)
    torch.manual_seed(seed)
    size = choose.choice([3, 40, 700])
    fixed = torch.randn(size, 4)
    array = np.random.default_rng(seed).standard_normal((size, 4)).astype(np.float32)
    shared = torch.from_numpy(array)
    rows = torch.arange(size).split(max(size // 2, 1))
    layer, weight = nn.Linear(4, 4), nn.Parameter(torch.randn(4, 4))
    optimizer = torch.optim.SGD([weight, *layer.parameters()], lr=choose.choice([0.0, 0.1]))
    average = torch.zeros(4)
    sparse = torch.zeros(5000, 4)  # of which a step changes a row

    def written_by_numpy(step):
        if choose.random() < 0.5:
            array[choose.randrange(size)] += 1
        return shared.exp().sum(0)

    def written_and_restored(step):
        array[0] += 1
        shared.tanh()
        array[0] -= 1
        return shared.tanh()

    def freed_and_made_anew(step):
        for _ in range(3):
            made = torch.full((size, 4), float(choose.randrange(3))).sin()
        return made

    def in_place(step):
        average.mul_(choose.choice([1.0, 0.5]))
        return average.cos()

    def into_another(step):
        target = torch.empty(size, 4)
        torch.mul(fixed, 2.0, out=target)
        return target.log1p()

    def views(step):
        return fixed.t().contiguous().matmul(fixed[:, choose.randrange(4)]) + fixed[::2].sum()

    def dropped(step):
        return nn.functional.dropout(fixed, choose.choice([0.0, 0.3])).abs()

    def trained(step):
        loss = layer(fixed[rows[step % len(rows)]] @ weight).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def frozen(step):
        with torch.no_grad():
            return layer(fixed[rows[step % len(rows)]]).relu()

    def in_a_thread(step):
        made = []
        other = threading.Thread(target=lambda: made.append(array.__setitem__(0, step % 2)))
        other.start()
        other.join()
        return shared.sigmoid()

    def one_row_of_many(step):
        sparse[choose.randrange(5000)] += 1
        return sparse.sigmoid().sum()

    def complex_numbers(step):
        return torch.view_as_complex(fixed[:, :2].contiguous()).conj().abs() + fixed.sum()

    def listed(step):
        return torch.cat([fixed, shared])[torch.tensor([step % 2, 0])].softmax(-1)

    def signs(step):
        return fixed / choose.choice([0.0, -0.0]) + torch.add(fixed.long(), choose.choice([1, True])).sum()

    kinds = [
        *(written_by_numpy, written_and_restored, freed_and_made_anew, in_place, into_another, views, dropped, trained),
        *(frozen, in_a_thread, one_row_of_many, complex_numbers, listed, signs),
    ]
    parts = choose.sample(kinds, 4)
    for step in range(5):
        for part in parts:
            part(step)
            if choose.random() < 0.3:
                part(step)
        yield


def judged(seed):
    watch = Judged()
    watch.begin()
    for _ in program(seed):
        watch.step()
    assert watch.end()
    return watch.calls


def claims_and_truths(seeds):
    claimed = true = 0
    for seed in seeds:
        for name, claims, again in judged(seed):
            assert again or not claims, (seed, name)
            claimed += claims
            true += again
    return claimed, true


def test_what_is_called_a_repetition_is_one():
    claimed, true = claims_and_truths(range(8))
    assert claimed > 0.1 * true


@pytest.mark.many
def test_what_is_called_a_repetition_is_one_in_many_programs():
    claims_and_truths(range(8, 400))


def watched(run, steps=5, **settings):
    """The watch's result after so many calls of a function, each a step."""
    watch = ContentsWatch(**settings)
    watch.begin()
    for step in range(steps):
        run(step)
        watch.step()
    assert watch.end()
    return watch.result()


def again(result):
    return {site.operator: (site.again, site.judged) for site in result.sites if site.stack >= 0}


def test_a_constant_input_repeats_from_the_second_call_on():
    x = torch.ones(4)
    assert again(watched(lambda step: x.exp())) == {"aten::exp": (4, 4)}


def test_memory_that_numpy_writes_is_another_input():
    array = np.zeros((300, 300), np.float32)
    x = torch.from_numpy(array)

    def run(step):
        array[7, 7] = step
        x.exp()

    assert again(watched(run))["aten::exp"][0] == 0


def test_a_result_of_this_step_is_named_with_the_line_that_made_it():
    def run(step):
        x = torch.full((4,), float(step))
        x.exp()
        x.exp()

    result = watched(run)
    first, second = result.sites
    assert (first.again, second.again) == (0, 5)
    assert second.earlier == first.stack
    assert result.lines[result.stacks[second.earlier][0]] == "x.exp()"


def test_batches_that_come_back_are_not_called_constant():
    batches = torch.arange(8.0).reshape(2, 4)
    (site,) = watched(lambda step: batches[step % 2].exp(), steps=8).sites  # each comes back in the second step
    assert (site.again, site.in_a_row, site.values) == (6, 0, 2)


def test_layers_that_are_called_in_turn_do_not_make_constant_inputs_come_back():
    x = torch.ones(4)

    def run(step):
        for scale in (2.0, 3.0):
            torch.mul(x, scale)

    (site,) = watched(run).sites
    assert (site.again, site.in_a_row, site.values) == (8, 8, 2)


def test_backward_passes_and_optimizers_are_counted_and_not_judged():
    weight = nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.0)

    def run(step):
        weight.exp().sum().backward()
        optimizer.step()

    others = [site for site in watched(run).sites if site.stack < 0]
    assert {"aten::mul", "aten::add_"} & {site.operator for site in others}
    assert not any(site.judged for site in others)


def test_random_numbers_are_no_repetition_unless_they_are_not_drawn():
    x = torch.ones(1000)
    assert again(watched(lambda step: torch.bernoulli(x / 2)))["aten::bernoulli"] == (0, 5)
    with torch.inference_mode():
        assert again(watched(lambda step: nn.functional.dropout(x, 0.5, training=False)))["aten::dropout"] == (4, 4)


def test_what_a_checkpoint_computes_again_is_no_repetition():
    layer = nn.Linear(4, 4)

    def run(step):
        x = torch.full((2, 4), float(step), requires_grad=True)
        checkpoint(lambda x: layer(x).exp().sin(), x, use_reentrant=False).sum().backward()

    assert not any(site.again for site in watched(run).sites)


def test_a_closure_that_an_optimizer_calls_is_not_judged():
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.LBFGS([weight], max_iter=3, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (weight.exp() - 2).square().sum()
        loss.backward()
        return loss

    assert not any(site.again for site in watched(lambda step: optimizer.step(closure)).sites)


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_a_tensor_that_is_more_than_its_bytes_is_not_judged():
    x = torch.quantize_per_tensor(torch.ones(4), 1.0, 0, torch.qint8)
    assert again(watched(lambda step: x.dequantize())) == {}


def test_it_ends_when_it_has_cost_enough():
    x = torch.ones(4)
    watch = ContentsWatch(cost_ns=0)
    watch.begin()
    x.exp()
    x.exp()
    assert watch.over
    assert watch.end()
    assert again(watch.result()) == {"aten::exp": (0, 1)}


def test_it_waits_for_a_mode_of_the_program(monkeypatch):
    monkeypatch.setattr(contents, "known_compilations", lambda: 0)
    watch, other = ContentsWatch(), OperatorMode(Tally())
    watch.begin()
    with other:
        assert not watch.end()
        torch.ones(4).exp()
    assert watch.end()
    assert again(watch.result()) == {}
    assert may_watch()
    with other:
        assert not may_watch()


@pytest.mark.parametrize("begins_inside", [False, True])
@pytest.mark.parametrize("ends_inside", [False, True])
def test_operators_run_after_it_wherever_it_began_and_ended(begins_inside, ends_inside):
    watch = ContentsWatch()
    with torch.inference_mode() if begins_inside else nullcontext():
        watch.begin()
        torch.ones(4).exp()
    with torch.inference_mode() if ends_inside else nullcontext():
        assert watch.end() == (begins_inside == ends_inside)
        torch.rand(4)
    torch.rand(4)  # it has no arguments: only the thread's state decides where it goes
    with torch.inference_mode() if begins_inside else nullcontext():
        assert watch.end()
    torch.rand(4)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_an_error_of_the_program_is_the_programs():
    watch = ContentsWatch()
    watch.begin()
    with pytest.raises(RuntimeError, match="size"):
        torch.ones(3) @ torch.ones(4)
    assert not watch.over
    assert watch.end()


def test_results_that_cannot_be_compared_are_the_programs_alone():
    x = torch.eye(3)
    assert "aten::_to_sparse" not in {
        name for name, (count, _) in again(watched(lambda _: x.to_sparse())).items() if count
    }


def test_an_error_of_the_watch_ends_it_and_is_not_the_programs(monkeypatch):
    monkeypatch.setattr(contents, "_sample", lambda memory: {}[0])
    watch = ContentsWatch()
    watch.begin()
    assert torch.ones(3).exp().shape == (3,)
    assert watch.over
    assert watch.end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_runs_without_it():
    watch = ContentsWatch()
    watch.begin()
    child = os.fork()
    if not child:
        os._exit(torch._C._len_torch_dispatch_stack())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert watch.end()


def test_results_are_bit_for_bit_those_without_it():
    def trained():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv1d(2, 8, 3), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.1), nn.Flatten())
        optimizer = torch.optim.AdamW(net.parameters())
        for _ in range(3):
            loss = net(torch.randn(4, 2, 16)).logsumexp(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return bits(net.state_dict().values())

    plain = trained()
    watch = ContentsWatch()
    watch.begin()
    beside = trained()
    assert watch.end()
    assert beside == plain


REPEATS = """
import torch

weight = torch.nn.Parameter(torch.ones(64, 64))
optimizer = torch.optim.SGD([weight], lr=0.1)
table = torch.rand(64, 64)
for step in range(45):
    loss = (torch.linalg.inv(table) @ weight).square().mean()
    loss.backward()
    optimizer.step()
"""


def test_a_programs_steps_are_watched_after_ten_that_are_not(profile_program, tmp_path):
    (tmp_path / "program.py").write_text(REPEATS)
    ran = profile_program("--active", "3", "--no-stacks", program=tmp_path / "program.py")
    noted = ran.trace()["torchwhy_contents"]
    unwatched = [number for number, _ in ran.trace()["torchwhy_unrecorded_steps"]]
    assert 3 <= noted["steps"] <= 32
    assert [number for number in unwatched if number > 6][:10] == list(range(8, 18))
    inverse = next(site for site in noted["sites"] if site["operator"] == "aten::linalg_inv_ex")
    assert inverse["again"] == inverse["judged"] > 0
    assert noted["lines"][noted["stacks"][inverse["stack"]][0]].startswith("loss = (torch.linalg.inv(table)")
    assert "computed-again" in (ran.folder / "findings.json").read_text()


@pytest.mark.many
def test_nothing_is_watched_where_that_is_not_wanted(profile_program, tmp_path):
    (tmp_path / "program.py").write_text(REPEATS)
    ran = profile_program("--no-contents", program=tmp_path / "program.py")
    assert ran.trace()["torchwhy_contents"] is None


WITHOUT_STEPS = """
import time
import torch

state = torch.full((300, 400), 1e-40)
began = time.process_time()
while time.process_time() < began + 1.5:
    decayed = state * 0.5
"""


def test_a_program_without_steps_is_watched_after_what_is_recorded(profile_program, tmp_path):
    (tmp_path / "program.py").write_text(WITHOUT_STEPS)
    ran = profile_program("--seconds", "0.3", program=tmp_path / "program.py")
    noted = ran.trace()["torchwhy_contents"]
    assert noted["steps"] == 0
    (trial,) = noted["trials"]
    assert trial["operator"] == "aten::mul"
    assert trial["looks"] == trial["subnormal"] > 8
    assert trial["reruns"] == 8
    assert noted["cost_s"] < 1


@pytest.mark.many
def test_steps_that_are_found_later_are_recorded_and_watched_instead(profile_program, tmp_path):
    (tmp_path / "program.py").write_text(WITHOUT_STEPS + REPEATS)
    ran = profile_program("--seconds", "0.3", "--active", "3", program=tmp_path / "program.py")
    noted = ran.trace()["torchwhy_contents"]
    assert ran.steps() == [4, 5, 6]
    assert 3 <= noted["steps"] <= 32
    assert "aten::linalg_inv_ex" in {site["operator"] for site in noted["sites"]}
