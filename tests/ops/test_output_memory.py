import copy
import io
import os
import pickle
import threading

import pytest
import torch

from torchfx._ops import native, output_memory
from torchfx._ops.output_memory import KEPT, SMALLEST

pytestmark = pytest.mark.skipif(native.library is None, reason="outputs of the reference are PyTorch's own")

SOS = torch.tensor([[0.2, 0.4, 0.2, 1.0, -0.6, 0.4]], dtype=torch.float64)
SAMPLES = SMALLEST // 4


def floats(count):
    return output_memory.reused((count,), torch.float32, 4 * count)


def filtered(x):
    return torch.ops.torchfx_ext.sos_forward(x, SOS)[0]


@pytest.fixture(autouse=True)
def unused():
    output_memory._unused.clear()
    yield output_memory._unused
    output_memory._unused.clear()


@pytest.mark.parametrize("shape", [(SAMPLES,), (2, SAMPLES), (3, 2, SAMPLES)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_outputs_equal_small_ones(shape, dtype, generator):
    x = torch.randn(shape, generator=generator, dtype=dtype)
    y = filtered(x)
    assert (y.shape, y.dtype) == (x.shape, dtype)
    assert y.is_contiguous()
    torch.testing.assert_close(y[..., :1000], filtered(x[..., :1000].contiguous()))


def test_memory_is_used_again_when_its_tensor_has_died_and_not_before(unused):
    x = torch.ones(2, SAMPLES)
    first = filtered(x)
    view, expected = first[:, 5:7], first[:, 5:7].clone()
    address = first.data_ptr()
    del first
    assert filtered(x * 2).data_ptr() != address
    assert torch.equal(view, expected)
    del view
    assert address in [filtered(x).data_ptr() for _ in range(2)]


def test_an_output_kept_by_autograd_is_not_used_again():
    x = torch.ones(2, SAMPLES, requires_grad=True)
    squared = filtered(x).square()
    for _ in range(3):
        filtered(torch.zeros(2, SAMPLES))
    squared.sum().backward()
    y = filtered(x.detach())
    expected = torch.ops.torchfx_ext.sos_forward((2 * y).flip(-1), SOS)[0].flip(-1)
    torch.testing.assert_close(x.grad, expected)


def test_what_is_kept_is_bounded(unused):
    held = [floats(4 << 20) for _ in range(6)]
    assert sum(map(len, unused)) == 0
    held.clear()
    assert 0 < sum(map(len, unused)) <= KEPT


def test_sizes_apart_do_not_share(unused):
    floats(SAMPLES)
    assert len(unused) == 1
    assert floats(4 * SAMPLES).nbytes == 4 * SMALLEST
    assert len(unused) == 2


@pytest.mark.parametrize("through", ["pickle", "save", "deepcopy", "numpy", "share", "set", "shrink"])
def test_an_output_is_a_tensor_like_others(through, generator):
    y = filtered(torch.randn(2, SAMPLES, generator=generator))
    expected = y.tolist()
    if through == "pickle":
        y = pickle.loads(pickle.dumps(y))
    elif through == "save":
        torch.save(y, file := io.BytesIO())
        assert len(file.getvalue()) < 1.01 * y.nbytes + 4096
        file.seek(0)
        y = torch.load(file)
    elif through == "deepcopy":
        y = copy.deepcopy(y)
    elif through == "numpy":
        y = torch.from_numpy(y.numpy())
    elif through == "share":
        assert y.share_memory_().is_shared()
    elif through == "set":
        y = torch.empty(0).set_(y.untyped_storage(), 0, (2, SAMPLES), (SAMPLES, 1))
    elif through == "shrink":
        y.resize_(1, SAMPLES)
        expected = expected[:1]
    for _ in range(3):
        filtered(torch.zeros(2, SAMPLES))
    assert y.tolist() == expected


def test_many_threads_at_once():
    wrong = []

    def work(value):
        x = torch.full((2, SAMPLES), float(value))
        expected = filtered(x).clone()
        wrong.extend(value for _ in range(20) if not torch.equal(filtered(x), expected))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_its_parents_outputs_alone():
    y, silence = filtered(torch.ones(2, SAMPLES)), torch.zeros(2, SAMPLES)
    expected = y.clone()
    filtered(torch.ones(2, SAMPLES))
    child = os.fork()
    if child == 0:  # PyTorch's own threads do not outlive a fork: NumPy looks
        y.numpy()[:] = 0
        os._exit(int(filtered(silence).numpy().any()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(y, expected)
