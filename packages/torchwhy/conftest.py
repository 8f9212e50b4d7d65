"""What is not collected: programs, and hand-offs to frameworks that are missing."""

from importlib.util import find_spec

FRAMEWORKS = {
    "lightning.py": ("lightning", "pytorch_lightning"),
    "transformers.py": ("transformers",),
    "tensorboard_plugin": ("tensorboard",),
    "mcp_server.py": ("mcp",),
}

collect_ignore = ["benchmark", "build", "docs", "examples", "tools"]
collect_ignore += [f"src/torchwhy/{name}" for name, packages in FRAMEWORKS.items() if not any(map(find_spec, packages))]
collect_ignore_glob = ["*conftest.py"]  # they hold no doctests, and share one name
