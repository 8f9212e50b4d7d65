"""`torchfx completion`: bash itself is asked what it would complete."""

import shutil
import subprocess

import pytest

from command import run_here

ASK = """
eval "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_torchfx torchfx "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
echo "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    return {shell: run_here("completion", shell, folder=folder).stdout for shell in ("bash", "zsh", "fish")}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash isn't installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["torchfx", "proc"], ["process"]),
        (["torchfx", "process", "--dry"], ["--dry-run"]),
        (["torchfx", "convert", "--eff"], []),
        (["torchfx", "process", "-e", "hibutt"], ["hibutterworth"]),
        (["torchfx", "process", "talk"], []),  # a file's name
        (["torchfx", "nothing", "--dry"], []),
    ],
)
def test_bash_completes(scripts, words, completed):
    ran = subprocess.run(
        ["bash", "-c", ASK, "bash", scripts["bash"], *words], capture_output=True, text=True, check=True
    )
    assert (ran.stdout.split(), ran.stderr) == (completed, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_script(scripts, shell, tmp_path):
    script = scripts[shell]
    assert "--skip-existing" in script.replace("-l ", "--")
    assert "hibutterworth" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        assert subprocess.run([shell, "-n", tmp_path / "script"], check=False, capture_output=True).returncode == 0


def test_another_shell_is_refused(tmp_path):
    ran = run_here("completion", "tcsh", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "error: SHELL must be one of bash, zsh, fish, got 'tcsh'\n")
