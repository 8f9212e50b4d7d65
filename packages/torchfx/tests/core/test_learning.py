"""`learn`: free numbers for the optimiser, values in range for the filter."""

import copy
import math
import pickle

import pytest
import torch
from torch.nn.utils import parametrize

import torchfx as fx
from torchfx.errors import ArgumentError, ArgumentTypeError

FS = 48_000


def peak(**given):
    return fx.filter.Peaking(**{"cutoff": 1000.0, "q": 2.0, "gain_db": 6.0, "fs": FS, **given})


def test_a_learned_parameter_starts_where_it_was_and_the_filter_stays_the_same(generator):
    x = torch.randn(2, 1025, generator=generator)
    learned = fx.learn(peak())
    assert torch.allclose(learned(x), peak()(x), atol=1e-6)
    assert repr(learned).splitlines()[:2] == ["Peaking(", "  cutoff=1000, q=2, gain_db=6, fs=48000"]
    assert [name.split(".")[1] for name, _ in learned.named_parameters()] == ["cutoff", "q", "gain_db"]


@pytest.mark.parametrize("push", [1e3, -1e3])
def test_no_step_leaves_the_range(push, generator):
    learned = fx.learn(peak(), "gain_db", cutoff=(100, 4000), q=(0.5, 8))
    with torch.no_grad():
        for free in learned.parameters():
            free += push
    assert 100 <= learned.cutoff.item() <= 4000
    assert 0.5 <= learned.q.item() <= 8
    assert -18 <= learned.gain_db.item() <= 18
    assert bool(learned(torch.randn(100, generator=generator)).isfinite().all())


def test_frequencies_move_by_ratio_and_decibels_by_difference():
    learned = fx.learn(peak(cutoff=math.sqrt(100 * 6400), gain_db=0.0), cutoff=(100, 6400), gain_db=(-12, 12))
    with torch.no_grad():
        for free in learned.parameters():
            free += math.log(3)  # from half of the range to three quarters
    assert learned.cutoff.item() == pytest.approx(100 * 64**0.75)
    assert learned.gain_db.item() == pytest.approx(6)


def test_gradients_reach_the_free_numbers_through_chains(generator):
    x = torch.randn(2, 500, generator=generator, dtype=torch.float64)
    learned = fx.learn(peak())
    frees = [free.detach().clone() for free in learned.parameters()]

    def run(*values):
        names = [name for name, _ in learned.named_parameters()]
        return torch.func.functional_call(learned, dict(zip(names, values, strict=True)), (x[:, :20],))

    assert torch.autograd.gradcheck(run, [free.requires_grad_() for free in frees])
    chain = learned | fx.effect.Gain(0.5)
    before = chain(x).detach()
    chain(x).square().mean().backward()
    torch.optim.SGD(learned.parameters(), lr=1.0).step()
    assert not torch.allclose(chain(x), before)  # no remembered plan is stale


def test_each_example_of_a_batch_learns_its_own(generator):
    cutoffs = torch.tensor([[100.0], [1000.0], [9000.0]])
    learned = fx.learn(peak(cutoff=cutoffs), "cutoff")
    assert learned.cutoff.shape == (3, 1)
    assert torch.allclose(learned.cutoff.float(), cutoffs)
    learned(torch.randn(3, 2, 200, generator=generator)).square().mean().backward()
    (free,) = learned.parameters()
    assert bool((free.grad != 0).all())


def test_an_equaliser_learns_its_bands():
    learned = fx.learn(fx.filter.ParametricEQ([100, 1000, 5000], q=[1.0, 1.0, 2.0], gain_db=[0.0, 3.0, -3.0], fs=FS))
    assert {name.split(".")[1]: free.shape for name, free in learned.named_parameters()} == dict.fromkeys(
        ("cutoff", "q", "gain_db"), torch.Size([3])
    )


def test_a_value_is_assigned_saved_and_made_fixed_again():
    learned = fx.learn(peak(), "cutoff")
    learned.cutoff = 440.0
    assert learned.cutoff.item() == pytest.approx(440)
    other = fx.learn(peak(), "cutoff")
    other.load_state_dict(learned.state_dict())
    assert other.cutoff.item() == copy.deepcopy(learned).cutoff.item() == learned.cutoff.item()
    parametrize.remove_parametrizations(learned, "cutoff")
    assert type(learned) is fx.filter.Peaking
    assert learned.cutoff.item() == pytest.approx(440)


def test_a_processor_that_learns_is_pickled_with_its_free_numbers(generator):
    learned = fx.learn(peak(), "gain_db", cutoff=(500, 2000))
    with torch.no_grad():
        learned.parametrizations.cutoff.original.fill_(1e3)  # at the end of its range, where no value has a free number
    chain = learned | fx.effect.Gain(0.5)
    restored = pickle.loads(pickle.dumps(chain))
    x = torch.randn(2, 100, generator=generator)
    assert torch.equal(restored(x), chain(x))
    assert [name for name, _ in restored.named_parameters()] == [name for name, _ in chain.named_parameters()]
    assert all(torch.equal(a, b) for a, b in zip(restored.parameters(), chain.parameters(), strict=True))
    again = pickle.loads(pickle.dumps(fx.learn(restored[0], "q")))
    assert torch.equal(again(x), learned(x))
    again(x).square().sum().backward()
    assert again.parametrizations.gain_db.original.grad is not None
    parametrize.remove_parametrizations(again, "q")
    assert type(parametrize.remove_parametrizations(again, "cutoff")).__name__ == "ParametrizedPeaking"
    assert type(parametrize.remove_parametrizations(again, "gain_db")) is fx.filter.Peaking


def test_parametrizations_of_others_are_refused_by_pytorch():
    learned = fx.learn(peak(), "gain_db")
    parametrize.register_parametrization(learned, "gain_db", torch.nn.Identity())
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(learned)


def test_the_usual_range_widens_for_a_value_outside_of_it():
    learned = fx.learn(peak(cutoff=10.0, gain_db=30.0), "cutoff", "gain_db")
    ranges = [module for module in learned.modules() if hasattr(module, "logarithmic")]
    assert [(module.low, module.high) for module in ranges] == [(5.0, 0.45 * FS), (-18.0, 48.0)]


@pytest.mark.parametrize(
    ("learning", "message"),
    [
        (lambda: fx.learn(peak(), "cuttoff"), r"Peaking can learn cutoff, q, gain_db, got 'cuttoff'"),
        (lambda: fx.learn(peak(fs=None), "cutoff"), r"cutoff needs a range while Peaking has no fs: .*\(low, high\)"),
        (lambda: fx.learn(peak(), cutoff=(100, 30_000)), r"cutoff must lie in \(0, fs/2\) = .*got 30000"),
        (lambda: fx.learn(peak(), cutoff=(2000, 4000)), r"cutoff must lie in \(2000, 4000\), the range .* got 1000"),
        (lambda: fx.learn(peak(), gain_db=(9, -9)), r"the range of gain_db must ascend, got \(9, -9\)"),
        (lambda: fx.learn(peak(), gain_db=9), r"the range of gain_db must be a pair \(low, high\), got 9"),
        (lambda: fx.learn(fx.learn(peak(), "q"), "q"), "q of Peaking is learned already"),
        (lambda: fx.learn(fx.filter.LoShelving(100, fs=FS), "slope"), "slope of LoShelving is None"),
        (lambda: fx.learn(fx.filter.FIR([0.5, 0.5])), "FIR has no number to learn"),
        (lambda: setattr(fx.learn(peak(), q=(1, 4)), "q", 5.0), r"q must lie in \(1, 4\), .* got 5"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_refused(learning, message):
    with pytest.raises(ArgumentError, match=message):
        learning()


def test_only_processors_learn():
    with pytest.raises(ArgumentTypeError, match="processor must be a filter or an effect, got Linear"):
        fx.learn(torch.nn.Linear(2, 2))
