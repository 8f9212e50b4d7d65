"""Fixtures every test may use."""

import numpy as np
import pytest
import torch

collect_ignore = ["profiler/programs"]  # programs to be profiled: importing one runs it


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
