"""Which files hold no tests where a package is missing: imports of their own are to fail nowhere else."""

from importlib.util import find_spec

FRAMEWORKS = {
    "lightning.py": ("lightning", "pytorch_lightning"),
    "transformers.py": ("transformers",),
    "tensorboard_plugin": ("tensorboard",),
}

collect_ignore = [
    f"src/torchfx/profiler/{name}" for name, packages in FRAMEWORKS.items() if not any(map(find_spec, packages))
]
collect_ignore_glob = [] if find_spec("triton") else ["src/torchfx/_ops/*kernels.py"]
