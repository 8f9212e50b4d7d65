"""Traces of small programs, recorded on an H100 by `tools/gpu_check.py` (PyTorch 2.11, CUDA 13.0).

What the programs do is known: three steps of a product of matrices and a sum, or of training a small model.
"""

import json
from pathlib import Path

import pytest

from tests.command_line import run_here

RECORDED = Path(__file__).parent / "recorded"

PROGRAMS = {
    # name: verdict, kernels in three steps, launches of graphs, the finding with most at stake
    "matmul_add_64": ("overhead-bound", 6, 0, "B1"),
    "matmul_add_4096": ("compute-bound", 6, 0, "D2"),
    "matmul_add_graph": ("overhead-bound", 6, 3, "B1"),
    "matmul_add_compiled": ("overhead-bound", 3, 0, "B1"),  # the sum runs in the product, after a copy
    "training_step": ("overhead-bound", 81, 0, "B1"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_report_says_what_the_program_does(name, tmp_path):
    verdict, kernels, graphs, first = PROGRAMS[name]
    ran = run_here("explain", RECORDED / f"{name}.json.gz", "--format", "json", folder=tmp_path)
    report = json.loads(ran.stdout)
    [gpu] = report["gpu"]
    assert report["verdict"]["kind"] == verdict
    assert (gpu["kernels"], report["launches"]["graph_launches"]) == (kernels, graphs)
    assert gpu["name"] == "NVIDIA H100 80GB HBM3"
    assert report["findings"][0]["code"] == first
    assert report["failed"] == []
