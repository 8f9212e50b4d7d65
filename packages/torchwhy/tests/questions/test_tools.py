"""Tools: the files they may see, errors as answers, and the protocol with its own client."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.analysis.programs import training
from tests.command_line import run_here
from tests.present.test_agent_format import EVIL, outside
from tests.ranks.jobs import write_job
from torchwhy.present.budget import tokens_in
from torchwhy.questions.catalogue import QUESTIONS
from torchwhy.questions.tools import Tools, schema

STEP = Path(__file__).parents[1] / "recorded" / "training_step.json.gz"


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "traces"
    inside.mkdir()
    training(load=480).write(inside / "a.json")
    training().write(tmp_path / "secret.json")
    (inside / "link.json").symlink_to(tmp_path / "secret.json")
    (inside / "broken.json").write_text("{")
    return inside


@pytest.mark.parametrize("path", ["a.json", "./a.json", "../traces/a.json"])
def test_files_in_the_folder_are_read(path, folder):
    text, wrong = Tools([folder]).call("explain", {"trace": path})
    assert not wrong
    assert "verdict: " in text
    assert "ask: finding|evidence|timeline(trace, id); table(trace, name)" in text
    assert Tools([folder]).call("explain", {"trace": str(folder / "a.json")}) == (text, False)


def test_paths_from_the_current_folder_are_read(folder, monkeypatch):
    """`torchwhy profile` prints such paths, and agents repeat them."""
    monkeypatch.chdir(folder.parent)
    inside = Tools([folder]).call("explain", {"trace": "a.json"})
    assert Tools([folder]).call("explain", {"trace": "traces/a.json"}) == inside
    for path in ("secret.json", "traces/../secret.json", "traces/link.json"):
        assert Tools([folder]).call("explain", {"trace": path})[1]


@pytest.mark.parametrize(
    "path",
    ["../secret.json", "link.json", "/etc/passwd", "~/a.json", "missing.json", "-", "", "..", "a.json\0", "a" * 9000],
)
def test_nothing_else_is_read(path, folder):
    for argument in ("trace", "capture"):
        text, wrong = Tools([folder]).call("explain", {"trace": "a.json", argument: path})
        assert wrong, text
        assert text.startswith("error: ")
        assert tokens_in(text) <= 2000
        assert "root:" not in text


def test_a_run_with_a_link_to_elsewhere_is_not_read(folder):
    run = folder / "run"
    run.mkdir()
    (run / "trace.json").symlink_to(folder / "a.json")
    assert not Tools([folder]).call("explain", {"trace": "run"})[1]
    (run / "trace.json").unlink()
    (run / "trace.json").symlink_to(folder.parent / "secret.json")
    text, wrong = Tools([folder]).call("explain", {"trace": "run"})
    assert wrong
    assert "trace must be a file or folder in" in text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("remove", {}, "there is no tool 'remove'; there are explain, table, finding"),
        ("explain", {}, "explain needs trace"),
        ("explain", {"trace": 3}, "trace must be of type str, got int"),
        ("explain", {"trace": "a.json", "tokens": 10}, 'error: "tokens must be 200 or more, got 10'),
        ("explain", {"trace": "a.json", "tokens": "many"}, "tokens must be a whole number, got str"),
        ("explain", {"trace": "broken.json"}, "broken.json"),
        ("explain", {"trace": "a.json", "steps": "x"}, "steps"),
        ("finding", {"trace": "a.json", "id": "Q1"}, "it has B"),
        ("table", {"trace": "a.json", "name": "secrets"}, 'error: "name must be one of'),
        ("table", {"trace": "a.json", "name": "kinds", "by_shape": True}, "name must be ops, got kinds"),
        ("table", {"trace": "a.json", "name": "ops", "sort": "secrets"}, "column must be one of"),
        ("diff", {"before": "a.json", "after": "../secret.json"}, "after must be a file or folder in"),
    ],
)
def test_errors_are_answers(name, arguments, message, folder):
    text, wrong = Tools([folder]).call(name, arguments)
    assert wrong
    assert message in text
    assert "\n" not in text
    assert "Traceback" not in text
    assert "--" not in text  # options are for the command line


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "runs").mkdir()
    for name, compute in (("even", 300), ("alike", 300), ("slow", 900), ("usual", 301)):
        write_job(tmp_path / f"runs/{name}", 2, compute=[compute, compute])
    (tmp_path / "runs/broken").mkdir()
    (tmp_path / "runs/broken/trace.json").write_text("{")
    return tmp_path / "runs"


@pytest.mark.parametrize("tokens", [200, 400, 2000])
def test_a_folder_of_runs_has_the_answer_of_the_command(runs, tokens):
    text, wrong = Tools([runs.parent]).call("explain", {"trace": "runs", "tokens": tokens})
    assert not wrong
    assert tokens_in(text) <= tokens
    ran = run_here("explain", runs, "--format", "agent", "--tokens", str(tokens), folder=runs.parent)
    answers = (text.replace("tokens ", ""), ran.stdout.replace("--tokens ", "").replace("tokens ", ""))
    told, said = ([line for line in one.splitlines() if not line.startswith(("ask: ", "cut to"))] for one in answers)
    assert told == said or tokens == 200  # commands are longer than calls
    assert "slow stands out" in text
    assert not (runs / ".torchwhy").exists()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_other_questions_name_a_run_to_ask(runs, question):
    if question.name == "explain":
        return
    given = {"name": "ops", "id": "B1", "trace": "runs", "before": "runs", "after": "runs"}
    names = {one.name for one in question.parameters}
    text, wrong = Tools([runs.parent]).call(question.name, {k: v for k, v in given.items() if k in names})
    assert wrong
    assert f"{question.name} is about one run, and {runs} holds several runs; ask {runs}/alike" in text


def test_steps_of_several_runs_and_runs_of_which_not_one_can_be_read_are_errors(runs):
    text, wrong = Tools([runs.parent]).call("explain", {"trace": "runs", "steps": "1-2"})
    assert (wrong, "steps and capture are about one trace, and" in text) == (True, True)
    for path in runs.rglob("rank*.json"):
        path.write_text("{")
    text, wrong = Tools([runs.parent]).call("explain", {"trace": "runs"})
    assert (wrong, "not one of 5 runs can be read" in text) == (True, True)


@pytest.mark.parametrize("name", EVIL, ids=range(len(EVIL)))
def test_an_error_quotes_what_it_was_given(name, folder):
    tools = Tools([folder])
    calls = [
        tools.call(name, {}),
        tools.call("explain", {"trace": name}),
        tools.call("explain", {name: 1}),
        tools.call("finding", {"trace": "a.json", "id": name}),
        tools.call("table", {"trace": "a.json", "name": name}),
        tools.call("timeline", {"trace": "a.json", "range": name}),
    ]
    for text, wrong in calls:
        assert wrong
        assert "IGNORE" not in outside(text)
        assert text.isprintable()
        assert tokens_in(text) <= 2000


def test_schemas_say_what_is_needed():
    for one in QUESTIONS:
        drawn = schema(one)
        assert set(drawn["required"]) == {parameter.name for parameter in one.parameters if parameter.needed}
        assert set(drawn["properties"]) == {parameter.name for parameter in one.parameters} | {"tokens"}
        assert drawn["properties"]["tokens"]["minimum"] == 200


def test_the_command_refuses_what_is_no_folder(tmp_path):
    ran = run_here("mcp", tmp_path / "missing", folder=tmp_path)
    assert ran.returncode == 2
    assert "FOLDER must be a folder with recordings" in ran.stderr


def test_without_the_package_the_command_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "torchwhy.mcp_server", raising=False)
    ran = run_here("mcp", folder=tmp_path)
    assert ran.returncode == 3
    assert "pip install torchwhy[mcp]" in ran.stderr


def test_the_protocols_own_client_is_served(folder):
    pytest.importorskip("mcp")
    import anyio
    from mcp import ClientSession, StdioServerParameters, stdio_client

    (folder / "step.json.gz").write_bytes(STEP.read_bytes())
    words = ["-m", "torchwhy", "mcp", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def talk():
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            hello = await client.initialize()
            tools = (await client.list_tools()).tools
            answers = [
                await client.call_tool(name, arguments)
                for name, arguments in [
                    ("explain", {"trace": "step.json.gz", "tokens": 700}),
                    ("finding", {"trace": "step.json.gz", "id": "B1"}),
                    ("diff", {"before": "a.json", "after": "step.json.gz"}),
                    ("explain", {"trace": "../secret.json"}),
                    ("remove", {"trace": "a.json"}),
                    ("explain", {"trace": "a.json", "tokens": 300}),
                ]
            ]
            return hello, tools, answers

    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one: Playwright leaves one
        hello, tools, answers = thread.submit(anyio.run, talk).result()
    assert hello.server_info.name == "torchwhy"
    assert [tool.name for tool in tools] == [one.name for one in QUESTIONS]
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert [answer.is_error for answer in answers] == [False, False, False, True, True, False]
    alone = Tools([folder])
    (text,) = [part.text for part in answers[0].content]
    assert text == alone.call("explain", {"trace": "step.json.gz", "tokens": 700})[0]
    assert [tokens_in(answer.content[0].text) <= 2000 for answer in answers] == [True] * 6
    assert answers[0].structured_content is None
