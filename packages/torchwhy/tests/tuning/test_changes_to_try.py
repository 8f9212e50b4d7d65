"""The changes that are declared: which findings they answer, and when they fit a program."""

import pickle

import pytest

from torchwhy.rules.catalogue import all_rules
from torchwhy.tuning.catalogue import all_kinds, changes_for, combined
from torchwhy.tuning.records import Facts, Loader

PLAIN = Facts(threads=4, processors=4, libraries=("libc", "libgomp"), trained=True, modules=("Net",))
LOADER = Loader(line="train.py:31")
WORKERS = Loader(workers=2, line="train.py:31")
EVERYTHING = [
    PLAIN,
    Facts(
        threads=32, processors=8, threads_set="train.py:3", loaders=(LOADER, WORKERS), optimizers=("Adam",),
        modules=("Net",), images=True, anomaly=True, bf16=True,
    ),
    Facts(cuda=True, loaders=(LOADER,), modules=("Net",), images=True),
]  # fmt: skip


def names(facts, stakes=None):
    return [change.name for change in changes_for(facts, stakes or {})]


def test_rules_that_are_answered_exist():
    slugs = {rule.slug for rule in all_rules()}
    assert {slug for kind in all_kinds() for slug in kind.answers} <= slugs


def test_each_kind_fits_some_program_and_says_how_to_keep_it():
    stakes = {slug: 0.1 for kind in all_kinds() for slug in kind.answers}
    found = [change for facts in EVERYTHING for change in changes_for(facts, stakes)]
    assert {kind.name for kind in all_kinds()} - {change.kind for change in found} <= {"other_allocators"}
    for change in found:
        assert all(change.permanent), change
        assert change.environment or change.apply, change
        assert pickle.loads(pickle.dumps(change)) == change or change.apply
        assert change.answers


def test_what_answers_the_largest_stake_comes_first():
    facts = Facts(threads=4, processors=4, loaders=(LOADER,), modules=("Net",))
    assert names(facts, {"dataloader-wait": 0.6, "small-steps": 0.1})[:2] == ["4 loader workers", "2 loader workers"]
    assert names(facts, {"dataloader-wait": 0.0, "missed-no-grad": 0.3})[0] == "no gradients"
    first = changes_for(facts, {"dataloader-wait": 0.6})[0]
    assert (first.stake, first.answers) == (0.6, ("dataloader-wait",))
    assert first.permanent == ("DataLoader(..., num_workers=4, persistent_workers=True)  # train.py:31",)


@pytest.mark.parametrize(("processors", "counts"), [(1, [1]), (2, [2, 1]), (8, [8, 4, 2, 1]), (128, [16, 2, 1])])
def test_workers_fit_the_machine(processors, counts):
    found = names(Facts(processors=processors, loaders=(LOADER,)), {"dataloader-wait": 0.5})[: len(counts) + 1]
    assert [int(name.split()[0]) for name in found if "loader worker" in name] == counts


@pytest.mark.parametrize(
    ("facts", "absent"),
    [
        (PLAIN, "4 threads"),
        (PLAIN, "no gradients"),
        (PLAIN, "rare garbage collection"),
        (PLAIN, "TF32 products"),
        (Facts(loaders=(Loader(iterable=True),), processors=4), "1 loader worker"),
        (Facts(loaders=(LOADER,), processors=2), "4 loader workers"),
        (Facts(modules=("Net",), compiled=True), "torch.compile"),
        (Facts(modules=("Net",), steps=False), "torch.compile"),
        (Facts(optimizers=("Adam",), fused=True), "fused optimizer"),
        (Facts(cuda=True), "denormals flushed"),
    ],
)
def test_what_does_not_fit_is_not_tried(facts, absent):
    assert absent not in names(facts)


def test_several_changes_are_one():
    threads, loader = (changes_for(facts, {})[-2] for facts in EVERYTHING[:2])
    both = combined((threads, loader))
    assert both.name == f"{threads.name} + {loader.name}"
    assert both.permanent == (*threads.permanent, *loader.permanent)
    assert both.environment == {**threads.environment, **loader.environment}
    called = []
    both = combined((_calling(called, "a"), _calling(called, "b")))
    both.apply("observer")
    assert called == [("a", "observer"), ("b", "observer")]


def _calling(called, name):
    from torchwhy.tuning.change import Change

    return Change(name, (name,), apply=lambda observer: called.append((name, observer)))
