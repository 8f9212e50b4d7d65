"""Python with PyTorch loaded already, from which processes are forked: loading it costs each of them seconds.

A forked process runs a module or a script as `python` would, with its own folder, environment and streams, and ends as
an interpreter does. What a program may notice: PyTorch is loaded before it begins.
"""

import atexit
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

LOADED = ("torch", "torch._dynamo", "torch.utils.data", "numpy")
SECONDS = 120


class Server:
    """Forks processes one after the other; ends with the process that made it."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.communicate)

    def run(self, words, folder, environment):
        """Run `python words...`; return its exit status and what it wrote, as `subprocess.run` does."""
        with tempfile.TemporaryDirectory() as streams:
            paths = [os.path.join(streams, name) for name in ("out", "err")]  # noqa: PTH118
            job = {"words": words, "folder": str(folder), "environment": environment, "streams": paths}
            job["deaf"] = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # as a shell's background programs are
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
            if not ready:
                raise TimeoutError(f"{words} did not end within {SECONDS} s")
            status = int(self._process.stdout.readline())
            return subprocess.CompletedProcess(words, status, *(Path(path).read_text() for path in paths))


_servers = {}


def python(*words, folder, environment, loaded=True):
    """Run Python, forked from a server that this process keeps; a new one if PyTorch may not be loaded before."""
    words = [*map(str, words)]
    if not (loaded and hasattr(os, "fork")):
        return subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
        )  # fmt: skip
    server = _servers.get(os.getpid())
    if server is None:
        server = _servers[os.getpid()] = Server()
    return server.run(words, folder, environment)


def serve():
    """Fork a process for each job that comes, in the process made for that."""
    for name in LOADED:
        __import__(name)
    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            replies.close()
            return job
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=replies, flush=True)
    return None


def become(job):
    """Make this process the one that was asked for."""
    for number, path in enumerate([os.devnull, *job["streams"]]):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    signal.signal(signal.SIGINT, signal.SIG_IGN if job["deaf"] else signal.default_int_handler)
    kind, *words = job["words"]
    if kind == "-m":
        sys.argv, sys.path[0] = words, job["folder"]
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [kind, *words], os.path.dirname(kind)  # noqa: PTH120
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__" and (job := serve()) is not None:
    become(job)
