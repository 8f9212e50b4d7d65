"""The fixture `profile_gate`, in test suites of its own."""

import subprocess
import sys

import pytest
import torch

from torchwhy.errors import ArgumentError

pytest_plugins = "pytester"

STEP = """
import torch

layer = torch.nn.Linear(3, 3)

def step():
    return layer(torch.ones(2, 3)).relu()
"""


@pytest.fixture(autouse=True, scope="module")
def compiler():
    """Import the whole compiler: pytester forgets what its runs import first, and that cannot be imported twice."""
    torch.compile(torch.sin, backend="eager")(torch.ones(1))


@pytest.fixture
def suite(pytester):
    """Run a test file in this process and return its outcome; pytest loads the plugin itself."""

    def run(code, *arguments, pyproject=""):
        pytester.makepyprojecttoml(pyproject)
        pytester.makepyfile(STEP + code)
        return pytester.runpytest_inprocess("-W", "default", *arguments)

    return run


def test_kept_budgets_pass(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(kernel_launches__max=12, syncs__eq=0, graph_breaks__eq=0) as c:
        step()
    assert c["aten::relu"] == 1
""")
    outcome.assert_outcomes(passed=1)


def test_limits_that_nothing_could_exceed_are_warned_of(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(kernel_launches__max=12):
        step()
""")
    outcome.assert_outcomes(passed=1)
    outcome.stdout.fnmatch_lines(["*GateWarning: profile_gate: kernel_launches cannot occur here: no GPU was in use*"])


def test_a_misspelt_operator_fails(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate({"aten::rellu__eq": 0}):
        step()
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*no such operator, did you mean 'aten::relu'*"])


def test_named_budgets_are_those_of_the_table_and_the_common_ones(suite):
    outcome = suite(
        """
def test_step(profile_gate):
    with profile_gate("small", operators__max=20):
        step()

def test_more(profile_gate):
    with profile_gate("small"):
        step()

def test_misspelt(profile_gate):
    with profile_gate("smal"):
        step()
""",
        pyproject="[tool.torchwhy.budgets]\nallocations__max = 9\n[tool.torchwhy.budgets.small]\noperators__max = 1\n",
    )
    outcome.assert_outcomes(passed=1, failed=2)
    outcome.stdout.fnmatch_lines(["*1 of 2 limits not kept*", "*operators is *, allowed: at most 1*"])
    outcome.stdout.fnmatch_lines(["*has no [[]tool.torchwhy.budgets.smal[]], did you mean 'small'?*"])


def test_budgets_of_another_type_are_refused(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(["small"]):
        step()
""")
    outcome.stdout.fnmatch_lines(["*budgets must be a dict or a table's name, got list*"])


def test_exceeded_budgets_fail_with_what_exceeded_them(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate({"aten::relu__eq": 0}, operators__max=1):
        step()
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(
        [
            "*profile_gate: 2 of 2 limits not kept*",
            "*aten::relu is 1, allowed: exactly 0*",
            "*1 test_exceeded_*.py:6 in step*",
            "*operators is *",
        ]
    )


def test_an_exception_in_the_block_is_what_fails(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(operators__max=0):
        step()
        raise RuntimeError("the reason")
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*RuntimeError: the reason*"])
    outcome.stdout.no_fnmatch_line("*limits not kept*")


def test_misspelt_budgets_are_errors_before_the_block_runs(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(synk__eq=0):
        raise SystemExit("ran")
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*unknown metric 'synk', did you mean 'syncs'?*"])


def test_without_budgets_those_of_pyproject_apply(suite):
    outcome = suite(
        """
def test_step(profile_gate):
    with profile_gate():
        step()
""",
        pyproject="[tool.torchwhy.budgets]\noperators__max = 1\n",
    )
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*operators is *, allowed: at most 1*"])


def test_without_any_budget_it_says_so(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate():
        step()
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*profile_gate needs a budget*"])


def test_dispatch_budgets_turn_the_trace_on(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(dispatches__eq=3):
        step()
""")
    outcome.assert_outcomes(passed=1)


def test_graph_breaks_of_a_warm_step_are_found(suite):
    outcome = suite("""
def broken(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()

def test_step(profile_gate):
    compiled = torch.compile(broken, backend="eager")
    compiled(torch.ones(3))
    with profile_gate(graph_breaks__eq=0):
        compiled(torch.ones(3))
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*graph_breaks is 1, allowed: exactly 0*"])


def test_blocks_may_be_nested(suite):
    outcome = suite("""
def test_step(profile_gate):
    with profile_gate(dispatches__eq=6), profile_gate(dispatches__eq=6):
        step()
        step()
""")
    outcome.assert_outcomes(passed=1)


def test_time_is_limited_only_as_a_ratio(profile_gate):
    x = torch.ones(1000)

    def once():
        return x.sin()

    def often():
        for _ in range(100):
            x.sin()

    assert profile_gate.time_ratio(once, often, max_ratio=1.0, max_time_s=0.5) < 1
    with pytest.raises(pytest.fail.Exception, match="allowed: at most 2"):
        profile_gate.time_ratio(often, once, max_ratio=2.0)  # as long as a busy machine needs to be sure
    with pytest.raises(ArgumentError, match="max_ratio must be greater than 0"):
        profile_gate.time_ratio(once, often, max_ratio=0)


def test_loading_the_plugin_loads_no_torch():
    code = "import _torchwhy_pytest, sys; print('torch' in sys.modules, 'numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


def test_pytest_finds_the_plugin_once_torchwhy_is_installed():
    from importlib.metadata import entry_points

    (found,) = entry_points(group="pytest11", name="torchwhy")
    assert found.value == "_torchwhy_pytest"
