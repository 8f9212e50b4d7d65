"""Whether two recordings are of one program, and what else differs."""

import pytest

from profiler.difference.pairs import OPERATORS, loop, traces
from profiler.traces import Story
from torchfx.profiler import diff

STEADY = [1000, 1010, 990, 1005, 995]
CONVOLUTIONAL = ("aten::cudnn_convolution", "aten::cudnn_batch_norm", "aten::max_pool2d", "aten::threshold_backward")


def between(a, b):
    return diff(*traces(a, b))


def test_different_programs_are_said_to_be_so_and_none_is_faster():
    found = between(loop(STEADY), loop([100, 101, 99, 100], operators=CONVOLUTIONAL))
    assert found.verdict.kind == "not comparable"
    assert "these look like different programs (0% of operators in common)" in found.verdict.sentence
    assert found.calls["gone"]  # numbers are shown nevertheless
    assert found.slower_than(0.1) is None


def test_twice_the_work_per_step_is_the_same_program():
    twice = (*OPERATORS, *OPERATORS)
    found = between(loop(STEADY), loop([2 * us for us in STEADY], operators=twice))
    assert found.likeness.share == pytest.approx(1)
    assert found.verdict.kind == "slower"


def test_another_optimizer_is_the_same_program():
    """A thousand small operators instead of one: the rest comes as often as before."""
    a, b = loop(STEADY, kernels=0), loop(STEADY, kernels=0)
    for i in range(5):
        for k in range(100):
            a.op("aten::addcmul_", 1000 * i + 850 + k, 0.5)
            a.op("aten::sqrt", 1000 * i + 850.5 + k, 0.4)
        b.op("aten::_foreach_addcmul_", 1000 * i + 850, 20)
    assert between(a, b).likeness.same_program


def test_eager_and_compiled_are_the_same_program():
    eager = loop(STEADY, operators=("aten::mm", "aten::gelu", "aten::sigmoid"))
    compiled = loop(STEADY, operators=("aten::mm",))
    for i in range(5):
        at = 1000 * i + 300
        compiled.op("TorchDynamo Cache Lookup", at - 10, 5)
        compiled.note("Torch-Compiled Region: 0/0", at, 400)
        compiled.op(f"## Call CompiledFxGraph f{i}abc ##", at + 10, 300)
        compiled.op("triton_poi_fused_gelu_sigmoid_0", at + 20, 100)
        compiled.kernel("triton_poi_fused_gelu_sigmoid_0", at + 50, 50, launch_at=at + 30)
    found = between(eager, compiled)
    assert found.likeness.same_program
    assert any("B runs compiled regions (torch.compile), A is eager" in text for text in found.conditions)
    assert {total.name: total.b for total in found.totals}["compiled regions"] == 1


def test_what_has_no_names_is_not_refused():
    def story(us):
        found = Story()
        for i in range(4):
            found.step(i, 100 * i, us)
        return found

    found = between(story(90), story(50))
    assert found.likeness.share is None
    assert found.verdict.kind == "faster"


def test_kernels_tell_the_program_where_there_are_no_operators():
    def story(*names):
        found = Story()
        for i in range(4):
            found.step(i, 100 * i, 90)
            for k, name in enumerate(names):
                found.kernel(name, 100 * i + 20 * k + 5, 10, launch_at=100 * i + 20 * k)
        return found

    assert between(story("a", "b", "c"), story("a", "b", "d")).likeness.share == pytest.approx(0.5)
    assert not between(story("a", "b", "c"), story("d", "e", "f")).likeness.same_program


def test_devices_are_named():
    a, b = loop(STEADY), Story(gpu="NVIDIA H100 80GB HBM3")
    b.events = [dict(event) for event in a.events]
    assert "A ran on NVIDIA A100-SXM4-80GB, B on NVIDIA H100 80GB HBM3." in between(a, b).conditions
    assert "A ran on NVIDIA A100-SXM4-80GB, B on CPU." in between(a, loop(STEADY, gpu=False)).conditions


def test_kernels_of_two_makers_are_not_listed_as_changes():
    a = loop(STEADY, cuda_runtime_version=12040)
    b = loop(STEADY, kernel_name="Cijk", hip_runtime_version=60200)
    found = between(a, b)
    assert found.two_vendors
    assert "two makers' kernels have different names" in " ".join(str(found).split())
    assert "\nKernels\n" not in str(found)


def test_stacks_on_one_side_distort():
    a, b = loop(STEADY), loop(STEADY)
    b.frame("train.py(12): step", 0, 900)
    assert any("Only B recorded Python stacks" in text for text in between(a, b).conditions)
    assert any("Only A recorded memory" in t for t in between(loop(STEADY, profile_memory=1), b).conditions)


def test_other_inputs_and_types_are_named():
    def story(size, kind):
        found = Story()
        for i in range(4):
            found.step(i, 1000 * i, 900)
            dims = {"Input Dims": [[size, 512], [512, 512]], "Input type": [kind, kind]}
            found.op("aten::mm", 1000 * i, 400, **dims)
        return found

    found = between(story(64, "float"), story(128, "c10::BFloat16"))
    assert "Inputs differ: aten::mm gets [64,512] [512,512] on A, [128,512] [512,512] on B." in [
        text.replace(", 512", ",512") for text in found.conditions
    ]
    assert "A computes in float32, B in bfloat16." in found.conditions


def test_ranks_of_one_job_are_named():
    found = between(loop(STEADY, rank=0), loop(STEADY[:4], rank=1))
    assert "A is rank 0, B rank 1." in found.conditions
