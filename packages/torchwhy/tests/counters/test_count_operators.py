"""Operators, native calls, copies and allocations of real programs on the CPU."""

import pytest
import torch
from torch import nn

import torchwhy


@pytest.fixture
def cnn():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 2)
    return nn.Sequential(*layers)


@pytest.fixture
def images():
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_forward_and_backward_of_a_training_step_are_counted(cnn, images):
    optimizer = torch.optim.SGD(cnn.parameters(), lr=0.1)
    with torchwhy.count() as c:
        loss = nn.functional.cross_entropy(cnn(images), torch.tensor([0, 1]))
        loss.backward()
        optimizer.step()
    forward = {"aten::convolution", "aten::native_batch_norm", "aten::relu", "aten::addmm", "aten::nll_loss_forward"}
    backward = {"aten::convolution_backward", "aten::native_batch_norm_backward", "aten::threshold_backward"}
    for name in forward | backward:
        assert c[name] == 1, name
    assert c["aten::mm"] == 2  # the linear layer's gradients for input and weight
    assert c["operators"] == sum(c.operators.values())


def test_counting_changes_no_result_and_repeats_exactly(cnn, images):
    cnn.eval()
    expected = cnn(images)
    counts = []
    for _ in range(2):
        with torchwhy.count() as c:
            result = cnn(images)
        counts.append(c.counts)
        assert torch.equal(result, expected)
    assert counts[0] == counts[1]


def test_an_empty_block_counts_nothing():
    with torchwhy.count() as c:
        pass
    values = c.metrics()
    assert values.pop("dispatches") is None
    assert set(values.values()) == {0}


def test_inference_mode_counts_the_operators_that_no_grad_counts(cnn, images):
    cnn.eval()
    with torch.no_grad(), torchwhy.count() as expected:
        cnn(images)
    with torch.inference_mode(), torchwhy.count() as c:
        cnn(images)
    assert c.operators == expected.operators
    assert "aten::linear" not in c.operators


@torch.library.custom_op("profiler_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_operators_outside_pytorch_are_native_calls():
    with torchwhy.count() as c:
        twice(torch.ones(3)) + 1
    assert c.native_calls == {"profiler_test::twice": 1}
    assert c["native_calls"] == 1


def test_pytorchs_own_operators_are_no_native_calls(cnn, images):
    with torchwhy.count() as c:
        cnn(images)
    assert c.native_calls == {}


def test_allocations_are_the_new_storages_in_bytes():
    x = torch.ones(100)
    with torchwhy.count() as c:
        y = x + 1  # 400 bytes
        z = torch.empty(10, dtype=torch.float64)  # 80 bytes
        torch.topk(y, 5)  # two results: 20 and 40 bytes
    del z
    assert (c.allocations, c.allocated_bytes) == (4, 540)


def test_views_and_in_place_operators_allocate_nothing():
    x = torch.ones(4, 6)
    with torchwhy.count() as c:
        x.view(6, 4).t()[1:].add_(1)
        torch.ops.aten._unsafe_view(x, [24])  # its schema hides that it shares the storage
        torch.add(x, 1, out=x)
    assert (c.allocations, c.allocated_bytes) == (0, 0)


def test_flops_of_products_and_convolutions_are_counted_by_operator():
    a, b, images = torch.ones(3, 4), torch.ones(4, 5, requires_grad=True), torch.ones(2, 3, 8, 8)
    with torchwhy.count() as c:
        (a @ b).sum().backward()  # the gradient of b is a product, too
        torch.nn.functional.conv2d(images, torch.ones(6, 3, 3, 3))
    assert c.flops == {"aten::mm": 2 * (2 * 3 * 4 * 5), "aten::convolution": 2 * (2 * 6 * 6 * 6) * (3 * 3 * 3)}
    assert c["flops"] == sum(c.flops.values())
    assert [part.label for part in c.parts("flops")] == ["aten::convolution", "aten::mm"]


def test_what_computes_no_products_has_no_flops():
    with torchwhy.count() as c:
        torch.ones(3, 4).exp().sum()
    assert (c.flops, c["flops"]) == ({}, 0)


def test_copies_within_the_host_are_counted_with_their_bytes():
    x = torch.ones(100)
    with torchwhy.count() as c:
        x.clone()
        x.to(torch.float64)
        torch.empty(100).copy_(x)
    assert c["copies_htoh"] == c["copies"] == 3
    assert c["bytes_htoh"] == c["copied_bytes"] == 400 + 800 + 400


def test_arithmetic_copies_nothing():
    x = torch.ones(100)
    with torchwhy.count() as c:
        x.to(torch.float32).contiguous() + x  # neither of the two has anything to do
    assert c.copies == {}


def test_reading_values_on_the_cpu_waits_for_no_device():
    x = torch.ones(3)
    with torchwhy.count() as c:
        x.sum().item()
        x.nonzero()
        x[x > 0].tolist()
    assert c.syncs == ()
    assert c.kernel_launches == 0


def test_sparse_tensors_are_counted_without_storage():
    x = torch.eye(3).to_sparse()
    with torchwhy.count() as c:
        (x * 2).to_dense()
    assert c["operators"] > 0


def test_higher_order_operators_are_counted():
    from torch._higher_order_ops.out_dtype import out_dtype

    a = torch.ones(2, 2, dtype=torch.int8)
    with torchwhy.count() as c:
        out_dtype(torch.ops.aten.mm.default, torch.int32, a, a)
    assert c["higher_order::out_dtype"] == 1
    assert c.native_calls == {}
