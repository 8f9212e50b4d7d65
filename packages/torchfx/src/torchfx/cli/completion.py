"""`torchfx completion`: a script for the shell, made of the commands' options. Completing starts no Python."""

from __future__ import annotations

import shlex
from typing import Any

from torchfx.catalogue import available
from torchfx.cli.console import answer, complain

__all__ = ["run"]

BASH = """_torchfx() {{
    local words="{commands}" last="${{COMP_WORDS[COMP_CWORD-1]}}"
    COMPREPLY=()
    if [[ $COMP_CWORD -gt 1 ]]; then
        case "${{COMP_WORDS[1]}}" in
{cases}
            *) return ;;
        esac
        if [[ $last == -e || $last == --effect ]]; then
            words="{effects}"
        elif [[ $2 != -* ]]; then
            return
        fi
    fi
    COMPREPLY=($(compgen -W "$words" -- "$2"))
}}
complete -o default -F _torchfx torchfx
"""
ZSH = "#compdef torchfx\nautoload -Uz compinit bashcompinit && compinit && bashcompinit\n"


def run(shell: str, root: Any) -> int:
    """Print the script for a shell, given the command with all its subcommands; return 0, or 2 for misuse."""
    scripts = {"bash": _bash, "zsh": lambda commands: ZSH + _bash(commands), "fish": _fish}
    if shell not in scripts:
        return complain(f"SHELL must be one of {', '.join(scripts)}, got {shell!r}", 2)
    commands = {name: command for name, command in sorted(root.commands.items()) if not command.hidden}
    answer(scripts[shell](commands))
    return 0


def _options(command: Any) -> list[tuple[list[str], str]]:
    """Return a command's options, each with its names and what it is for."""
    given = [(param.opts, param.help or "") for param in command.params if param.opts[0].startswith("-")]
    return [*given, (["--help", "-h"], "Show what there is to say and exit.")]


def _bash(commands: dict[str, Any]) -> str:
    cases = (
        f'            {name}) words="{" ".join(each for names, _ in _options(command) for each in names)}" ;;'
        for name, command in commands.items()
    )
    return BASH.format(commands=" ".join(commands), cases="\n".join(cases), effects=" ".join(available()))


def _fish(commands: dict[str, Any]) -> str:
    lines = []
    for name, command in commands.items():
        summary = shlex.quote((command.help or "").partition("\n")[0])
        lines.append(f"complete -c torchfx -n __fish_use_subcommand -f -a {name} -d {summary}")
        for names, text in _options(command):
            words = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in names)
            values = f" -x -a {shlex.quote(' '.join(available()))}" if "--effect" in names else ""
            seen = f"-n '__fish_seen_subcommand_from {name}'"
            lines.append(f"complete -c torchfx {seen} {words} -d {shlex.quote(text)}{values}")
    return "\n".join(lines) + "\n"
