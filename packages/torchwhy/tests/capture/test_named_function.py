"""A named function is wrapped where it is defined, whatever stands around it."""

import ast
from types import ModuleType

import pytest

from torchwhy.capture.launch.step_function import NamedFunction
from torchwhy.errors import ArgumentError


def run_script(source, name):
    calls, names = [], {}
    tree = ast.parse(source)
    NamedFunction.parse(name).rewrite(lambda: calls.append(1))(tree, names)
    exec(compile(tree, "script", "exec"), names)
    return len(calls)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def step(): pass\nstep(); step()", "step"),
        ("def step(): pass\nstep(); step()", "__main__:step"),
        ("step = lambda: None\nstep(); step()", "step"),
        ("if True:\n  def step(): pass\nstep(); step()", "step"),
        ("class A:\n  def step(self): pass\nA().step(); A().step()", "A.step"),
        ("class A:\n  @staticmethod\n  def step(): pass\nA.step(); A().step()", "A.step"),
        ("class A:\n  @classmethod\n  def step(cls): assert cls is A\nA.step(); A().step()", "A.step"),
    ],
)
def test_each_call_is_announced(source, name):
    assert run_script(source, name) == 2


def test_other_functions_are_left_alone():
    assert run_script("def other(): pass\nother()", "step") == 0


def test_a_loaded_module_is_wrapped_in_place():
    module, calls = ModuleType("lib"), []
    exec("class A:\n  @staticmethod\n  def step(x): return x", module.__dict__)
    assert NamedFunction.parse("lib:A.step").replace_in(module, lambda: calls.append(1))
    assert module.A.step(5) == 5
    assert calls == [1]
    assert not NamedFunction.parse("lib:missing").replace_in(module, lambda: None)
    assert not NamedFunction.parse("lib:No.step").replace_in(module, lambda: None)


@pytest.mark.parametrize("text", ["", "a b", "lib:", "lib:1x", "lib/mod:f"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(ArgumentError, match="step-on must be"):
        NamedFunction.parse(text)
